// How numbers, times and states are said.

export const outcomes = ["ok", "failed", "timed_out", "lost", "skipped", "cancelled", "unknown", "running"];
const names = { ok: "ok", failed: "failed", timed_out: "timed out", lost: "lost", skipped: "skipped", cancelled: "cancelled",
  unknown: "attempted", running: "running", pending: "pending" };

export const nameOf = (outcome) => names[outcome] ?? outcome;
export const int = (n) => Number(n).toLocaleString("en");

// ended is the number of tasks that have an outcome.
export const ended = (c) => outcomes.filter((o) => o !== "running").reduce((sum, o) => sum + c[o], 0);

export function span(ms) {
  const s = Math.max(0, Math.round(Number(ms) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const ago = (ms) => `${span(Date.now() - Number(ms))} ago`;
export const when = (ms) => new Date(Number(ms)).toLocaleString();

const good = new Set(["completed"]), bad = new Set(["failed", "expired", "inconsistent"]), warn = new Set(["completed_with_failures", "orphan"]);

const idle = new Set(["pending", "skipped", "cancelled"]);

// tone of a state's chip.
export function tone(b) {
  if (b.quarantined || bad.has(b.state)) return "bad";
  if (b.paused || warn.has(b.state)) return "warn";
  if (good.has(b.state)) return "good";
  return b.terminal || idle.has(b.state) ? "" : "info";
}

export function stateText(b) {
  const flags = [b.quarantined && "quarantined", b.paused && "paused"].filter(Boolean);
  return [b.state.replaceAll("_", " "), ...flags].join(", ");
}

// units counts the partitions of all stages, and those that have reported; of batches that wait for them, not for tasks.
export function units(b) {
  const stages = b.stages ?? [];
  return { all: stages.reduce((n, s) => n + s.units, 0), reported: stages.reduce((n, s) => n + s.reported, 0) };
}

export function percent(b) {
  const u = units(b), [done, all] = u.all && !b.terminal ? [u.reported, u.all] : [ended(b.counts), b.counts.total];
  return all ? Math.floor((100 * done) / all) : 0;
}
