// Keys and addresses of jobs.

// keyOf makes a key of where a job is read: /v1/jobs/<job>, with ?customer= where that is needed.
export function keyOf(self) {
  const url = new URL(self, location.origin), customer = url.searchParams.get("customer");
  const job = decodeURIComponent(url.pathname.split("/").at(-1));
  return customer ? `${customer}/${job}` : job;
}

export const jobHash = (key) => `#/job/${key.split("/").map(encodeURIComponent).join("/")}`;
