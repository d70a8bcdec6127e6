// One batch: how far it is, why it has not ended, what is missing, what failed.
import { outcomeBar, swatch } from "./bars.js";
import { el } from "./dom.js";
import { jobHash, keyOf } from "./job-key.js";
import { ended, int, nameOf, outcomes, percent, span, stateText, tone, units, when } from "./format.js";

export const nothing = () => el("p", { class: "empty" }, "Choose a batch to see why it has not ended, and what is missing.");

export function detail({ batch, explain, missing, failed }) {
  return [title(batch), progress(batch), why(batch, explain), stages(batch, explain), gaps(missing), failures(failed), facts(batch)];
}

function title(b) {
  return el("div", { class: "title" }, el("h2", { class: "mono", id: "batch-title" }, b.batch), el("span", { class: `chip ${tone(b)}` }, stateText(b)),
    el("a", { class: "close", href: "#/", "aria-label": "Close this batch" }, "×"));
}

function progress(b) {
  const c = b.counts, sealed = b.state !== "open" && b.state !== "orphan";
  const u = units(b), byUnits = u.all > 0 && !b.terminal;
  const said = byUnits ? `${u.reported} of ${u.all} units have reported${sealed ? `; ${int(c.total)} tasks were fed` : ""}` : sealed ? `${int(ended(c))} of ${int(c.total)} tasks` : `${int(ended(c))} tasks so far; how many there are is not known yet`;
  return el("section", { "aria-label": "Progress" },
    el("div", { class: "big num" }, (sealed || byUnits) && el("strong", {}, b.empty ? "empty" : `${percent(b)} %`), el("span", { class: "soft" }, b.empty ? "sealed with no task at all" : said),
      !b.terminal && !byUnits && b.rate ? el("span", { class: "soft" }, `· ${int(Math.round(b.rate))} tasks/s`) : null,
      !b.terminal && !byUnits && b.eta ? el("span", { class: "soft" }, `· about ${span(b.eta - Date.now())} left`) : null),
    byUnits && ended(c) === 0 ? unitBar(u) : outcomeBar(b, true),
    (!byUnits || ended(c) > 0) && el("ul", { class: "counts num" }, [...outcomes, "pending"].filter((o) => c[o] > 0).map((o) =>
      el("li", {}, swatch(o), el("b", {}, int(c[o])), el("span", { class: "soft" }, nameOf(o))))));
}

function unitBar(u) {
  return el("div", { class: "bar tall", role: "img", "aria-label": `${u.reported} of ${u.all} units have reported` },
    u.reported > 0 && el("i", { class: "ok", grow: u.reported }), el("i", { class: "pending", grow: u.all - u.reported }));
}

function why(b, x) {
  if (!x) return null;
  return el("section", {}, el("h3", {}, b.terminal ? "How it ended" : "Why it has not ended"),
    el("ol", { class: `why${b.terminal ? ` over ${tone(b)}` : ""}`, id: "why" }, x.lines.map((l) => el("li", {}, l))),
    (x.faults ?? []).map((f) => el("p", { class: "notice" }, `could not be looked up: ${f}`)));
}

const stuckAfter = 2000;

function unitClass(p) {
  if (p.reported) return "done";
  if (Number(p.lag) <= 0) return p.end === "-1" ? "" : "read";
  return Number(p.idle ?? 0) >= stuckAfter || !(p.member || p.host) ? "stuck" : "behind";
}

function unitText(p) {
  const said = { done: "has reported", read: "has read everything", behind: "is behind", stuck: "does not move", "": "has not reported" }[unitClass(p)];
  const lag = Number(p.lag) > 0 ? `, lag ${int(p.lag)}` : "";
  const idle = p.idle ? `, no progress for ${span(p.idle)}` : "";
  return `partition ${p.partition} ${said}${lag}${idle}${p.member ? `, owned by ${p.member}` : ""}`;
}

function stages(b, x) {
  const rows = x?.stages ?? [];
  if (rows.length === 0) return null;
  const byName = new Map((b.stages ?? []).map((s) => [`${s.stage} ${s.topic}`, s]));
  return el("section", {}, el("h3", {}, "Stages"), el("div", { class: "scroll" }, el("table", { id: "stages" },
    el("thead", {}, el("tr", {}, ["Stage", "Group", "Lag", "Reported", "Partitions"].map((h, i) => el("th", { scope: "col", class: i === 2 || i === 3 ? "num" : undefined }, h)))),
    el("tbody", {}, rows.map((s) => stageRow(s, byName.get(`${s.stage} ${s.topic}`)))))), key());
}

function stageRow(s, row) {
  const members = s.group ? `${s.members} ${s.members === 1 ? "member" : "members"}${s.group_state ? `, ${s.group_state.toLowerCase()}` : ""}` : "";
  return el("tr", {},
    el("td", {}, s.stage, el("span", { class: "sub mono" }, s.topic)),
    el("td", {}, el("span", { class: "mono" }, s.group || "–"), members && el("span", { class: "sub" }, members)),
    el("td", { class: "num" }, s.group ? int(s.lag) : "–"),
    el("td", { class: "num" }, row ? `${row.reported} / ${row.units}` : "–"),
    el("td", {}, el("span", { class: "units", role: "list", "aria-label": `partitions of ${s.topic} in stage ${s.stage}` },
      s.partitions.map((p) => el("i", { class: unitClass(p), role: "listitem", "aria-label": unitText(p), title: unitText(p) })))));
}

const key = () => el("p", { class: "key", "aria-hidden": "true" },
  [["done", "reported"], ["read", "read everything"], ["behind", "behind"], ["stuck", "does not move"]].map(([c, t]) =>
    el("span", {}, el("span", { class: "units" }, el("i", { class: c })), t)));

function gaps(m) {
  if (!m || (m.ranges.length === 0 && !(m.units ?? []).length)) return null;
  const ranges = m.ranges.map((r) => `${r.feeder ? `feeder ${r.feeder}: ` : ""}${r.first === r.last ? r.first : `${r.first}–${r.last}`}${r.running ? " (started)" : ""}`);
  const units = (m.units ?? []).map((u) => `${u.stage} / ${u.topic} / ${u.partition}`);
  const what = ranges.length ? `${int(m.count)} tasks without outcome` : "Units that have not reported";
  return el("section", {}, el("h3", {}, `Missing: ${what}`),
    el("ul", { class: "ranges mono", id: "missing" }, [...ranges, ...units].map((t) => el("li", {}, t)), m.next && el("li", {}, "…")));
}

function failures(f) {
  if (!f || f.tasks.length === 0) return null;
  return el("section", {}, el("h3", {}, "Failed tasks"), el("div", { class: "scroll" }, el("table", { id: "failed" },
    el("thead", {}, el("tr", {}, ["Task", "Outcome", "Reason", "Attempt"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, f.tasks.map((t) => el("tr", {}, el("td", { class: "mono" }, String(t.index)), el("td", {}, nameOf(t.outcome)),
      el("td", {}, t.reason ?? "–"), el("td", {}, String(t.attempt ?? "–"))))))),
    f.next && el("p", { class: "soft" }, "and more: quiesce batch tasks lists them all"));
}

function facts(b) {
  const d = b.deadlines ?? {}, p = b.policy, list = [
    ["Run", b.run], ["Round", b.round > 1 && String(b.round)], ["Mode", b.mode], ["Topology", b.topology && `${b.topology.name} version ${b.topology.version}`],
    ["Job", b.owner && [b.owner.self ? el("a", { href: jobHash(keyOf(b.owner.self)) }, b.owner.job) : b.owner.job, b.owner.step ? `, step ${b.owner.step}` : ""]],
    ["Policy", p?.kind && (p.tolerate ? `tolerate ${p.tolerate}` : p.kind.replaceAll("_", " "))],
    ["Seal by", d.seal_by && when(d.seal_by)], ["Complete by", d.complete_by && when(d.complete_by)], ["No progress for", d.no_progress_for && span(d.no_progress_for)],
    ["Started", b.started_at && when(b.started_at)], ["Sealed", b.sealed_at && when(b.sealed_at)], ["Ended", b.ended_at && when(b.ended_at)],
    ["Feeders", b.feeders?.length > 1 && `${b.feeders.filter((f) => f.sealed).length} of ${b.feeders.length} sealed`],
    ["Queue", b.queue && `${b.queue}, ${int(b.released ?? 0)} released`],
    ...Object.entries(b.labels ?? {}).map(([k, v]) => [`Label ${k}`, v]),
    ...Object.entries(b.audit).map(([k, v]) => [`Audit: ${k}`, v !== "0" && int(v)]),
  ].filter(([, v]) => v);
  return el("section", {}, el("h3", {}, "Facts"), el("dl", { class: "facts" }, list.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))));
}
