// Bars of outcomes and stages.
import { el } from "./dom.js";
import { ended, int, nameOf, outcomes, stateText } from "./format.js";

// outcomeBar shows the tasks of a batch by outcome; hatched while the number of tasks is not known.
export function outcomeBar(b, tall) {
  const c = b.counts, sealed = b.state !== "open" && b.state !== "orphan";
  const parts = outcomes.filter((o) => c[o] > 0);
  const rest = sealed ? Math.max(0, c.total - ended(c) - c.running) : Math.max(1, ended(c));
  const said = parts.map((o) => `${int(c[o])} ${nameOf(o)}`).join(", ") || "none ended";
  const label = sealed ? `${int(c.total)} tasks: ${said}, ${int(rest)} pending` : `not sealed; ${said}`;
  return el("div", { class: `bar${tall ? " tall" : ""}${sealed ? "" : " unsealed"}`, role: "img", "aria-label": label, title: label },
    parts.map((o) => el("i", { class: o, grow: c[o] })), el("i", { class: "pending", grow: rest }));
}

// stageBar shows how many units of a stage have reported.
export function stageBar(s, all) {
  const twice = all.filter((o) => o.stage === s.stage).length > 1;
  const label = `stage ${s.stage}, topic ${s.topic}: ${s.reported} of ${s.units} partitions have reported`;
  return el("div", { title: label },
    el("span", {}, el("b", {}, twice ? `${s.stage} ← ${s.topic}` : s.stage), el("span", { class: "num" }, `${s.reported}/${s.units}`)),
    el("div", { class: "bar", role: "img", "aria-label": label },
      s.reported > 0 && el("i", { class: "ok", grow: s.reported }), el("i", { class: "pending", grow: s.units - s.reported })));
}

// stepBar shows how far a step of a job is: by the outcomes of its tasks, or by its own state.
export function stepBar(s) {
  const c = s.counts, state = stateText(s);
  const said = c && s.state === "running" ? `${c.total ? Math.floor((100 * ended(c)) / c.total) : 0} %` : brief[s.state] ?? state;
  const parts = c ? outcomes.filter((o) => c[o] > 0).map((o) => [o, c[o]]) : [[whole[s.state] ?? "pending", 1]];
  const rest = c ? Math.max(0, c.total - ended(c) - c.running) : 0;
  const label = c ? `step ${s.step}, ${state}: ${int(ended(c))} of ${int(c.total)} tasks have ended` : `step ${s.step}: ${state}`;
  return el("div", { title: label },
    el("span", {}, el("b", {}, s.step), el("span", { class: "num" }, said)),
    el("div", { class: `bar${s.state === "splitting" ? " unsealed" : ""}`, role: "img", "aria-label": label },
      parts.map(([o, n]) => el("i", { class: o, grow: n })), rest > 0 && el("i", { class: "pending", grow: rest })));
}

const brief = { completed_with_failures: "with failures" };

// whole is the colour of a step that has no tasks of its own.
const whole = { completed: "ok", completed_with_failures: "ok", failed: "failed", cancelled: "cancelled", expired: "timed_out", skipped: "skipped", running: "running" };

export const swatch = (outcome) => el("span", { class: `swatch ${outcome}`, "aria-hidden": "true" });
