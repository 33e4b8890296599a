// Splits trace ids into requests for previews that the API accepts. Pure.

/** Traces in one request, as the API accepts them. */
export const PREVIEWS_MAX = 50;

/** Ids that a list parameter can carry: the API splits at commas and refuses longer ones. */
const ACCEPTED_ID = /^[^,]{1,128}$/;

/** Returns the ids of each request: only accepted ones, each once, at most PREVIEWS_MAX together. */
export function previewRequests(trace_ids: readonly string[]): string[][] {
  const ids = [...new Set(trace_ids)].filter((id) => ACCEPTED_ID.test(id));
  const requests = Math.ceil(ids.length / PREVIEWS_MAX);
  return Array.from({ length: requests }, (_, at) => ids.slice(at * PREVIEWS_MAX, (at + 1) * PREVIEWS_MAX));
}
