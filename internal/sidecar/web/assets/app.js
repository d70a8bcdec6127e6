// The page: a list that follows the events, and one batch beside it.
import * as api from "./api.js";
import { el, replace } from "./dom.js";
import { detail, nothing } from "./detail.js";
import { card, legend } from "./list.js";

const $ = (id) => document.getElementById(id);
const pageSize = 50, shown = 24, failedShown = 50;

const state = { filter: "active", cursors: [""], page: 0, next: "", ids: new Set(), current: "" };

// every runs a refresh at most once per interval, and never two at a time; what is asked meanwhile happens once after. One
// that takes long comes more rarely, so that a page never keeps the sidecar busy.
function every(interval, refresh) {
  let running = false, again = false, last = 0, took = 0;
  return async function ask() {
    if (running) { again = true; return; }
    running = true;
    const wait = last + Math.max(interval, 5 * took) - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    last = performance.now();
    again = false;
    try { await refresh(); } catch (err) { notice(err); }
    took = performance.now() - last;
    running = false;
    if (again) ask();
  };
}

function notice(err) {
  const recovering = err?.doc?.recovered_percent;
  const text = !err ? "" : recovering === undefined ? err.message : `The view is loading: ${Math.floor(recovering)} %`;
  $("notice").hidden = !text;
  $("notice").textContent = text;
  if (err) setTimeout(refreshList, 1000);
}

const refreshList = every(700, async () => {
  const { filter, page } = state;
  const got = await api.page(filter, state.cursors[page], pageSize);
  if (filter !== state.filter || page !== state.page) return;
  notice();
  state.next = got.next;
  state.ids = new Set(got.batches.map((b) => b.batch));
  const empty = got.next ? "None so far; Next looks further." : { active: "No open batch.", ended: "No batch has ended yet.", "": "No batch yet." }[filter];
  replace($("batches"), got.batches.length ? got.batches.map((b) => card(b, state.current)) : [el("li", { class: "empty" }, empty)]);
  $("prev").disabled = page === 0;
  $("next").disabled = !got.next;
  $("page").textContent = page > 0 || got.next ? `Page ${page + 1}` : "";
});

const refreshDetail = every(700, async () => {
  const id = state.current;
  if (!id) return replace($("detail"), [nothing()]);
  try {
    const batch = await api.batch(id);
    const c = batch.counts, failures = c.failed + c.timed_out + c.lost > 0;
    const [explain, missing, failed] = await Promise.all([api.explain(id), batch.terminal ? null : api.missing(id, shown),
      failures ? api.tasks(id, "failed,timed_out,lost", failedShown) : null]);
    if (id === state.current) replace($("detail"), detail({ batch, explain, missing, failed }));
  } catch (err) {
    if (err.status !== 404) throw err;
    if (id === state.current) replace($("detail"), [el("p", { class: "empty" }, `There is no batch ${id}.`)]);
  }
});

function route() {
  const match = location.hash.match(/^#\/batch\/(.+)$/);
  const before = state.current;
  state.current = match ? decodeURIComponent(match[1]) : "";
  document.title = state.current ? `${state.current} · Quiesce` : "Quiesce";
  for (const a of document.querySelectorAll(".batch")) {
    if (a.dataset.key === state.current) a.setAttribute("aria-current", "true");
    else a.removeAttribute("aria-current");
  }
  if (before !== state.current) {
    $("detail").scrollTop = 0;
    if (state.current) $("detail").focus({ preventScroll: true });
  }
  refreshDetail();
}

function show(filter) {
  Object.assign(state, { filter, cursors: [""], page: 0 });
  for (const b of $("filter").children) b.setAttribute("aria-pressed", String(b.dataset.state === filter));
  refreshList();
}

function turn(by) {
  if (by > 0) state.cursors[state.page + 1] = state.next;
  state.page += by;
  refreshList();
  $("list-title").scrollIntoView({ block: "nearest" });
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("theme", name); } catch { /* a private window */ }
}

theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("filter").addEventListener("click", (e) => e.target.dataset.state !== undefined && show(e.target.dataset.state));
$("prev").addEventListener("click", () => turn(-1));
$("next").addEventListener("click", () => turn(1));
$("jump").addEventListener("submit", (e) => {
  e.preventDefault();
  const id = $("jump-id").value.trim();
  if (id) location.hash = `#/batch/${encodeURIComponent(id)}`;
});
addEventListener("hashchange", route);
$("legend").replaceChildren(...legend());

// Committed offsets and rates move without events: what is open is looked at again now and then.
setInterval(() => { if (!document.hidden && state.current) refreshDetail(); }, 2000);
setInterval(() => { if (!document.hidden) refreshList(); }, 5000);

api.events((e) => {
  if (state.ids.has(e.subject) || e.type === "batch.started" || state.filter !== "active") refreshList();
  if (e.subject === state.current) refreshDetail();
}, (to, why) => {
  $("live").dataset.state = to;
  $("live").textContent = to === "on" ? "live" : "reconnecting";
  $("live").title = why ?? "";
  if (to === "on") refreshList();
});
route();
refreshList();
