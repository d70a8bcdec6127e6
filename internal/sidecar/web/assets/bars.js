// Bars of outcomes and stages.
import { el } from "./dom.js";
import { ended, int, nameOf, outcomes } from "./format.js";

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

export const swatch = (outcome) => el("span", { class: `swatch ${outcome}`, "aria-hidden": "true" });
