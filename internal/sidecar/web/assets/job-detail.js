// One job: how far it is, what it does now, its steps, what failed, what it was given and gave.
import { stepBar, swatch } from "./bars.js";
import { el } from "./dom.js";
import { ended, int, nameOf, outcomes, span, stateText, tone, when } from "./format.js";
import { stepsOver, waitsFor } from "./job-list.js";

export const jobDetail = (j, failed) => [title(j), progress(j), now(j), flow(j), steps(j), failures(failed), payloads(j), facts(j)];

function title(j) {
  return el("div", { class: "title" }, el("h2", { class: "mono", id: "job-title" }, j.job), el("span", { class: `chip ${tone(j)}` }, stateText(j)),
    el("a", { class: "close", href: "#/jobs", "aria-label": "Close this job" }, "×"));
}

function progress(j) {
  const c = j.steps.map((s) => s.counts).filter(Boolean);
  const tasks = c.reduce((n, x) => n + x.total, 0), done = c.reduce((n, x) => n + ended(x), 0);
  return el("section", { "aria-label": "Progress" }, el("div", { class: "big num" },
    el("strong", {}, `${stepsOver(j)} / ${j.steps.length}`), el("span", { class: "soft" }, "steps"),
    tasks > 0 && el("span", { class: "soft" }, `· ${int(done)} of ${int(tasks)} tasks`)),
    c.length > 0 && el("ul", { class: "counts num" }, [...outcomes, "pending"].map((o) => [o, c.reduce((n, x) => n + x[o], 0)]).filter(([, n]) => n > 0)
      .map(([o, n]) => el("li", {}, swatch(o), el("b", {}, int(n)), el("span", { class: "soft" }, nameOf(o))))));
}

// now says in words what the job waits for, or how it ended.
function now(j) {
  const lines = [];
  if (j.quarantined) lines.push("a record of it met a fault; its later records wait for a repair");
  if (j.paused) lines.push("paused: no step starts before it is resumed");
  if (j.terminal) lines.push(j.reason ? `${stateText(j)}: ${j.reason}` : stateText(j));
  else if (j.awaits) lines.push(waitsFor(j.awaits));
  for (const s of j.steps) {
    const line = j.terminal ? "" : doing(s);
    if (line) lines.push(line);
  }
  if (lines.length === 0) lines.push(stateText(j));
  return el("section", {}, el("h3", {}, j.terminal ? "How it ended" : "What it does"),
    el("ol", { class: `why over ${tone(j)}`, id: "why" }, lines.map((l) => el("li", {}, l))));
}

function doing(s) {
  const time = s.started_at ? `; it runs for ${span(Date.now() - s.started_at)}` : "";
  if (s.state === "splitting") return `step ${s.step}: a splitter of queue ${s.split} lists its tasks${time}`;
  if (s.state !== "running") return "";
  if (!s.counts) return `step ${s.step}: its task is in queue ${s.queue}${time}`;
  return `step ${s.step}: ${int(ended(s.counts))} of ${int(s.counts.total)} tasks of queue ${s.queue} have ended${time}`;
}

// flow draws the steps as columns: each stands right of all that it comes after.
function flow(j) {
  const depth = new Map(), byName = new Map(j.steps.map((s) => [s.step, s]));
  const at = (s) => {
    if (!depth.has(s.step)) depth.set(s.step, Math.max(-1, ...(s.after ?? []).map((a) => at(byName.get(a)))) + 1);
    return depth.get(s.step);
  };
  const columns = [];
  for (const s of j.steps) (columns[at(s)] ??= []).push(s);
  if (columns.length < 2) return null;
  return el("section", {}, el("h3", {}, "Flow"), el("ol", { class: "flow scroll", tabindex: "0", "aria-label": "Steps in the order in which they can run" },
    columns.map((column) => el("li", {}, column.map((s) => el("div", { class: `node ${tone(s)}` }, stepBar(s)))))));
}

function steps(j) {
  return el("section", {}, el("h3", {}, "Steps"), el("div", { class: "scroll" }, el("table", { id: "steps" },
    el("thead", {}, el("tr", {}, ["Step", "Queue", "State", "Tasks", "Time"].map((h, i) => el("th", { scope: "col", class: i > 2 ? "num" : undefined }, h)))),
    el("tbody", {}, j.steps.map(stepRow)))));
}

function stepRow(s) {
  const time = !s.started_at ? "–" : span((s.ended_at ?? Date.now()) - s.started_at);
  const kind = s.split ? [`split by ${s.split}`, s.window ? `window ${int(s.window)}` : ""] : [s.attempts > 1 ? `${s.attempts} attempts` : ""];
  return el("tr", {},
    el("td", {}, s.step, s.after?.length && el("span", { class: "sub" }, `after ${s.after.join(", ")}`)),
    el("td", {}, el("span", { class: "mono" }, s.queue), el("span", { class: "sub" }, kind.filter(Boolean).join(", "))),
    el("td", {}, el("span", { class: `chip ${tone(s)}` }, stateText(s)), s.round > 1 && el("span", { class: "sub" }, `round ${s.round}`), s.reason && el("span", { class: "sub" }, s.reason)),
    el("td", { class: "num" }, s.counts ? `${int(ended(s.counts))} / ${int(s.counts.total)}` : "–",
      s.batch && el("span", { class: "sub" }, el("a", { href: `#/batch/${encodeURIComponent(s.batch)}`, "aria-label": `Open batch ${s.batch}` }, "batch"))),
    el("td", { class: "num" }, time));
}

function failures(f) {
  if (!f || f.tasks.length === 0) return null;
  return el("section", {}, el("h3", {}, "Failed tasks"), el("div", { class: "scroll" }, el("table", { id: "failed" },
    el("thead", {}, el("tr", {}, ["Step", "Task", "Outcome", "Reason", "Attempt"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, f.tasks.map((t) => el("tr", {}, el("td", {}, t.step), el("td", { class: "mono" }, String(t.index)), el("td", {}, nameOf(t.outcome)),
      el("td", {}, t.reason ?? "–"), el("td", {}, String(t.attempt ?? "–"))))))),
    f.next && el("p", { class: "soft" }, "and more: each batch lists all of its own"));
}

const maxText = 4000; // characters of one payload

function payloads(j) {
  const list = [["Input", j.input], ...j.steps.map((s) => [`Result of ${s.step}`, s.result])].filter(([, p]) => p && said(p));
  if (list.length === 0) return null;
  return el("section", {}, el("h3", {}, "Input and results"), list.map(([name, p]) =>
    el("details", { "data-key": `payload ${name}` }, el("summary", {}, name, el("span", { class: "soft" }, p.content_type ? ` ${p.content_type}` : "")), el("pre", { class: "mono" }, said(p)))));
}

function said(p) {
  const text = p.json !== undefined ? JSON.stringify(p.json, null, 2) : p.text ?? p.base64 ?? p.reference ?? "";
  return text.length > maxText ? `${text.slice(0, maxText)} …` : text;
}

function facts(j) {
  const list = [
    ["Type", `${j.type} version ${j.type_version}`], ["Customer", j.customer], ["Round", j.round > 1 && String(j.round)], ["Priority", j.priority && String(j.priority)],
    ["Requested", when(j.requested_at)], ["Started", j.started_at && when(j.started_at)], ["Ended", j.ended_at && when(j.ended_at)],
    ["Complete by", j.complete_by && when(j.complete_by)], ["Version", j.version],
    ...Object.entries(j.labels ?? {}).map(([k, v]) => [`Label ${k}`, v]),
    ...Object.entries(j.audit).map(([k, v]) => [`Audit: ${k}`, v !== "0" && int(v)]),
  ].filter(([, v]) => v);
  return el("section", {}, el("h3", {}, "Facts"), el("dl", { class: "facts" }, list.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))));
}

// statistics stand where a job would, while none is chosen.
export function statistics(s) {
  const hint = el("p", { class: "empty" }, "Choose a job to see its steps, what they wait for, and what failed.");
  if (!s || s.stats.length === 0) return [hint];
  return [el("div", { class: "title" }, el("h2", {}, "Statistics"), el("span", { class: "soft" }, `${s.from} to ${s.to}, UTC`)),
    el("div", { class: "scroll" }, el("table", { id: "stats" },
      el("thead", {}, el("tr", {}, ["Job type, step", "Started", "Ended", "Tasks", "Failed", "Typical", "Slow", "Worker time"].map((h, i) => el("th", { scope: "col", class: i > 0 ? "num" : undefined }, h)))),
      el("tbody", {}, s.stats.map(statsRow)))),
    el("p", { class: "soft small" }, "Typical is the median of the durations, slow the 99th percentile. Failed are jobs in the line of a job type, tasks in that of a step.")];
}

function statsRow(r) {
  const failed = r.step ? r.tasks.failed + r.tasks.timed_out + r.tasks.lost : r.ended.failed + r.ended.expired;
  const over = Object.values(r.ended).reduce((n, x) => n + x, 0);
  return el("tr", {},
    el("td", {}, el("span", { class: r.step ? "indent" : "strong" }, r.step || r.type || "batches without a job"), r.queue && el("span", { class: `sub mono${r.step ? " indent" : ""}` }, r.queue)),
    el("td", { class: "num" }, int(r.started)), el("td", { class: "num" }, int(over)), el("td", { class: "num" }, r.tasks.ended ? int(r.tasks.ended) : "–"), el("td", { class: "num" }, int(failed)),
    el("td", { class: "num" }, r.elapsed ? span(r.elapsed.p50) : "–"), el("td", { class: "num" }, r.elapsed ? span(r.elapsed.p99) : "–"),
    el("td", { class: "num" }, r.worker_seconds ? span(1000 * r.worker_seconds) : "–"));
}
