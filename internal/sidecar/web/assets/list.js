// The list: one card per batch.
import { outcomeBar, stageBar, swatch } from "./bars.js";
import { el } from "./dom.js";
import { ago, ended, int, nameOf, outcomes, percent, span, stateText, tone, units } from "./format.js";

export const legend = () => [...outcomes, "pending"].map((o) => el("li", {}, swatch(o), nameOf(o)));

const maxStages = 8;

export function card(b, current) {
  const stages = b.stages ?? [];
  return el("li", {}, el("a", { class: "batch", href: `#/batch/${encodeURIComponent(b.batch)}`, "data-key": b.batch,
    "aria-current": current === b.batch ? "true" : undefined },
    el("div", { class: "row" },
      el("span", { class: "id mono" }, b.batch), el("span", { class: `chip ${tone(b)}` }, stateText(b)),
      el("span", { class: "end num" }, progress(b))),
    stages.length > 0 && el("div", { class: "stagebars" }, stages.slice(0, maxStages).map((st) => stageBar(st, stages))),
    (stages.length === 0 || ended(b.counts) > 0) && outcomeBar(b),
    el("div", { class: "note" }, el("span", {}, note(b)), b.started_at && el("span", {}, started(b)))));
}

function progress(b) {
  const u = units(b);
  if (u.all && !b.terminal) return `${u.reported} / ${u.all} units · ${percent(b)} %`;
  if (b.state === "open" || b.state === "orphan") return `${int(ended(b.counts))} ended`;
  if (b.empty) return "empty";
  return `${int(ended(b.counts))} / ${int(b.counts.total)} · ${percent(b)} %`;
}

function note(b) {
  if (b.quarantined) return "a record of it met a fault; it waits for a repair";
  if (b.reason) return b.reason;
  if (b.state === "orphan") return "nobody has started it";
  if (b.state === "open") return "not sealed yet";
  const failures = b.counts.failed + b.counts.timed_out + b.counts.lost;
  const said = [failures > 0 && `${int(failures)} failures`], pace = !b.terminal && !units(b).all;
  if (pace && b.rate) said.push(`${int(Math.round(b.rate))} tasks/s`);
  if (pace && b.eta) said.push(`about ${span(b.eta - Date.now())} left`);
  if (units(b).all) said.push(`${int(b.counts.total)} tasks fed`);
  return said.filter(Boolean).join(" · ") || b.mode || "";
}

const started = (b) => b.ended_at ? `took ${span(b.ended_at - b.started_at)}` : `started ${ago(b.started_at)}`;
