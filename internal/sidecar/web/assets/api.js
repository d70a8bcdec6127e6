// Talks to the sidecar. Errors are problem documents; 401 asks for the token once and tries again.

const store = sessionStorage;
let asking;

function headers(extra) {
  const token = store.getItem("token");
  return token ? { ...extra, Authorization: `Bearer ${token}` } : { ...extra };
}

function askToken() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token-dialog");
    dialog.addEventListener("close", () => {
      store.setItem("token", document.getElementById("token").value);
      asking = undefined;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

export class Problem extends Error {
  constructor(status, doc) {
    super(doc.detail ? `${doc.title}: ${doc.detail}` : doc.title);
    this.status = status;
    this.doc = doc;
  }
}

async function request(path, options = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: headers(options.headers) });
    if (response.status === 401) {
      await askToken();
      continue;
    }
    if (!response.ok) {
      const doc = await response.json().catch(() => ({ title: response.statusText }));
      throw new Problem(response.status, doc);
    }
    return response;
  }
}

export const get = async (path) => (await request(path)).json();

const enc = encodeURIComponent;
export const batch = (id) => get(`/v1/batches/${enc(id)}`);
export const explain = (id) => get(`/v1/batches/${enc(id)}/explain`);
export const missing = (id, limit) => get(`/v1/batches/${enc(id)}/missing?limit=${limit}`);
export const tasks = (id, outcome, limit) => get(`/v1/batches/${enc(id)}/tasks?outcome=${outcome}&limit=${limit}`);

// page gives a full page of batches or jobs where there is one: the sidecar may answer short ones.
export async function page(name, state, cursor, limit) {
  const items = [];
  for (let tries = 0; tries < 20; tries++) {
    const q = new URLSearchParams({ limit: String(limit - items.length) });
    if (state) q.set("state", state);
    if (cursor) q.set("cursor", cursor);
    const part = await get(`/v1/${name}?${q}`);
    items.push(...part[name]);
    cursor = part.next ?? "";
    if (!cursor || items.length >= limit) break;
  }
  return { items, next: cursor };
}

// events calls back for each event, for ever: a stream that ends is resumed after the last event that was seen.
export async function events(onEvent, onState) {
  let last = "", wait = 500;
  for (;;) {
    try {
      const response = await request("/v1/events", { headers: last ? { "Last-Event-ID": last } : {} });
      onState("on");
      wait = 500;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const blocks = text.split("\n\n");
        text = blocks.pop();
        for (const block of blocks) last = dispatch(block, onEvent) ?? last;
      }
    } catch (err) {
      onState("off", err.message);
    }
    onState("off");
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, 10000);
  }
}

function dispatch(block, onEvent) {
  let id, data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (id && data) onEvent(JSON.parse(data));
  return id;
}
