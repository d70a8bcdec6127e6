// The page: a list that follows the events, and one entry of it beside it. A view says what stands in both.
import * as api from "./api.js";
import { el, replace } from "./dom.js";
import { batches } from "./batches.js";
import { jobs } from "./jobs.js";
import { legend } from "./list.js";

const $ = (id) => document.getElementById(id);
const pageSize = 50;
const views = { batches, jobs };

const state = { view: batches, filter: "active", cursors: [""], page: 0, next: "", subjects: new Set(), current: "", shown: new Set() };

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
  if (err && err.status !== 501) setTimeout(refreshList, 1000);
}

const refreshList = every(700, async () => {
  const { view, filter, page } = state;
  const stale = () => view !== state.view || filter !== state.filter || page !== state.page;
  let got;
  try { got = await api.page(view.name, filter, state.cursors[page], pageSize); } catch (err) { if (stale()) return; throw err; }
  if (stale()) return;
  notice();
  state.next = got.next;
  state.subjects = new Set(got.items.flatMap(view.subjects));
  const empty = got.next ? "None so far; Next looks further." : view.empty[filter];
  replace($("batches"), got.items.length ? got.items.map((x) => view.card(x, state.current)) : [el("li", { class: "empty" }, empty)]);
  $("prev").disabled = page === 0;
  $("next").disabled = !got.next;
  $("page").textContent = page > 0 || got.next ? `Page ${page + 1}` : "";
});

const refreshDetail = every(700, async () => {
  const { view, current } = state;
  const same = () => view === state.view && current === state.current;
  try {
    const { nodes, subjects } = current ? await view.detail(current) : { nodes: await view.nothing(), subjects: [] };
    if (!same()) return;
    state.shown = new Set(subjects);
    replace($("detail"), nodes);
  } catch (err) {
    if (!same()) return;
    if (err.status !== 404) throw err;
    replace($("detail"), [el("p", { class: "empty" }, `There is no ${view.one} ${current}.`)]);
  }
});

// route reads the address: #/ and #/jobs are lists, #/batch/<id> and #/job/<customer>/<id> or #/job/<id> one entry.
function route() {
  const one = location.hash.match(/^#\/(batch|job)\/(.+)$/);
  const view = one?.[1] === "job" || location.hash === "#/jobs" ? jobs : batches;
  const before = state.current, current = one ? one[2].split("/").map(decodeURIComponent).join("/") : "";
  state.current = current;
  document.title = current ? `${current} · Quiesce` : "Quiesce";
  if (view !== state.view) turnTo(view);
  for (const a of document.querySelectorAll(".batch")) {
    if (a.dataset.key === current) a.setAttribute("aria-current", "true");
    else a.removeAttribute("aria-current");
  }
  if (before !== current) {
    $("detail").scrollTop = 0;
    if (current) $("detail").focus({ preventScroll: true });
  }
  refreshDetail();
}

function turnTo(view) {
  state.view = view;
  replace($("batches"), []);
  replace($("detail"), []);
  labels();
  show("active");
}

function labels() {
  const { view } = state;
  $("list-title").textContent = view.title;
  $("jump-id").placeholder = $("jump-label").textContent = view.jump;
  for (const a of $("views").children) {
    if (views[a.dataset.view] === view) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
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
  if (id) location.hash = state.view.hash(id);
});
addEventListener("hashchange", route);
$("legend").replaceChildren(...legend());

// Committed offsets and rates move without events: what is open is looked at again now and then.
setInterval(() => { if (!document.hidden && state.current) refreshDetail(); }, 2000);
setInterval(() => { if (!document.hidden) refreshList(); }, 5000);

api.events((e) => {
  if (state.subjects.has(e.subject) || e.type === state.view.born || state.filter !== "active") refreshList();
  if (state.shown.has(e.subject)) refreshDetail();
}, (to, why) => {
  $("live").dataset.state = to;
  $("live").textContent = to === "on" ? "live" : "reconnecting";
  $("live").title = why ?? "";
  if (to === "on") refreshList();
});
labels();
route();
refreshList();
