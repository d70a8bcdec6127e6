// The list of jobs: one card per job, one bar per step.
import { stepBar } from "./bars.js";
import { el } from "./dom.js";
import { ago, int, span, stateText, tone } from "./format.js";
import { jobHash, keyOf } from "./job-key.js";

const maxSteps = 12;
const over = new Set(["completed", "completed_with_failures", "failed", "cancelled", "expired", "skipped"]);

export const stepsOver = (j) => j.steps.filter((s) => over.has(s.state)).length;

export function jobCard(j, current) {
  const key = keyOf(j.self), rest = j.steps.length - maxSteps;
  return el("li", {}, el("a", { class: "batch", href: jobHash(key), "data-key": key, "aria-current": current === key ? "true" : undefined },
    el("div", { class: "row" },
      el("span", { class: "id mono" }, j.job), el("span", { class: `chip ${tone(j)}` }, stateText(j)),
      el("span", { class: "end num" }, `${stepsOver(j)} / ${j.steps.length} steps`)),
    el("div", { class: "stagebars" }, j.steps.slice(0, maxSteps).map(stepBar), rest > 0 && el("div", {}, `and ${int(rest)} more`)),
    el("div", { class: "note" }, el("span", {}, note(j)), el("span", {}, since(j)))));
}

function note(j) {
  if (j.quarantined) return "a record of it met a fault; it waits for a repair";
  const said = [j.customer, `${j.type} version ${j.type_version}`];
  if (j.reason) said.push(j.reason);
  else if (j.awaits) said.push(waitsFor(j.awaits));
  return said.filter(Boolean).join(" · ");
}

export function waitsFor(a) {
  const list = [];
  if (a.slot) list.push("a slot: its customer has as many jobs running as it may");
  if (a.batches?.length) list.push(`batch ${a.batches.join(", ")}`);
  if (a.jobs?.length) list.push(`job ${a.jobs.join(", ")}`);
  return `waits for ${list.join(", and for ")}`;
}

function since(j) {
  if (j.ended_at) return `took ${span(j.ended_at - (j.started_at ?? j.requested_at))}`;
  return j.started_at ? `started ${ago(j.started_at)}` : `requested ${ago(j.requested_at)}`;
}
