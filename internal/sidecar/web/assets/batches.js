// The view of batches.
import * as api from "./api.js";
import { detail, nothing } from "./detail.js";
import { card } from "./list.js";

const shown = 24, failedShown = 50;

export const batches = {
  name: "batches", one: "batch", title: "Batches", jump: "Open a batch by its id", born: "batch.started",
  empty: { active: "No open batch.", ended: "No batch has ended yet.", "": "No batch yet." },
  hash: (id) => `#/batch/${encodeURIComponent(id)}`,
  subjects: (b) => [b.batch],
  card,
  nothing: () => [nothing()],
  async detail(id) {
    const batch = await api.batch(id);
    const c = batch.counts, failures = c.failed + c.timed_out + c.lost > 0;
    const [explain, missing, failed] = await Promise.all([api.explain(id), batch.terminal ? null : api.missing(id, shown),
      failures ? api.tasks(id, "failed,timed_out,lost", failedShown) : null]);
    return { nodes: detail({ batch, explain, missing, failed }), subjects: [id] };
  },
};
