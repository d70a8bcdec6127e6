// The view of jobs. A key is <job>, or <customer>/<job> where the deployment keeps the jobs of each customer apart.
import * as api from "./api.js";
import { jobCard } from "./job-list.js";
import { jobDetail, statistics } from "./job-detail.js";
import { jobHash } from "./job-key.js";

const failedShown = 50;

function path(key) {
  const [job, customer] = key.split("/").reverse().map(encodeURIComponent);
  return { job: `/v1/jobs/${job}`, query: customer === undefined ? "" : `?customer=${customer}` };
}

const batchesOf = (j) => j.steps.map((s) => s.batch).filter(Boolean);

export const jobs = {
  name: "jobs", one: "job", title: "Jobs", jump: "Open a job by its id", born: "job.requested",
  empty: { active: "No open job.", ended: "No job has ended yet.", "": "No job yet." },
  hash: jobHash,
  subjects: (j) => [j.job, ...batchesOf(j)],
  card: jobCard,
  async nothing() {
    const got = await api.get("/v1/stats?by=total&limit=100").catch((err) => { if (err.status === 501) return null; throw err; });
    return statistics(got);
  },
  async detail(key) {
    const { job, query } = path(key);
    const j = await api.get(job + query);
    const bad = (s) => s.counts && s.counts.failed + s.counts.timed_out + s.counts.lost > 0;
    const more = `${query ? `${query}&` : "?"}outcome=failed,timed_out,lost&limit=${failedShown}`;
    const failed = j.steps.some(bad) ? await api.get(`${job}/tasks${more}`) : null;
    return { nodes: jobDetail(j, failed), subjects: [j.job, ...batchesOf(j)] };
  },
};
