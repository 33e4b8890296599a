// Requests that run before the scripts of the page are there: the session, and the outline of a trace that
// the address names. The client takes each answer once, in place of a request of its own. Bound: two requests
// a page; an answer that nobody has taken is dropped after TAKEN_WITHIN_MS.

/** The scripts of the page come within this time, or the page asks again; usually it is a tenth of a second. */
const TAKEN_WITHIN_MS = 60_000;
const TRACE = /^\/o\/([^/]+)\/traces\/([^/]+)\/?$/;
/** Pages that show no session of a person. */
const WITHOUT_SESSION = /^\/(?:login|operator)(?:\/|$)/;

const started = new Map<string, Promise<Response>>();

const keyOf = (address: string, org_id: string | null): string => `${org_id ?? ''} ${address}`;

function begin(address: string, org_id: string | null): void {
  const key = keyOf(address, org_id);
  const answer = fetch(address, {
    headers: { Accept: 'application/json', ...(org_id === null ? {} : { 'X-Org-Id': org_id }) },
  });
  // The client that takes the answer handles its failure.
  answer.catch(() => undefined);
  started.set(key, answer);
  setTimeout(() => started.delete(key), TAKEN_WITHIN_MS);
}

/** Starts the requests of an address of the portal. */
export function startEarly({ origin, pathname }: { origin: string; pathname: string }): void {
  if (!WITHOUT_SESSION.test(pathname)) begin(`${origin}/v1/session`, null);
  const [, org, trace] = TRACE.exec(pathname) ?? [];
  if (org !== undefined && trace !== undefined)
    begin(`${origin}/v1/traces/${encodeURIComponent(decoded(trace))}/outline`, decoded(org));
}

/** Returns a segment of an address as text; a segment that is no valid encoding stays as it is. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Returns the answer to a request that runs already; null where there is none, or another request has taken it. */
export function takeEarly({ method, url, headers }: Request): Promise<Response> | null {
  if (started.size === 0 || method !== 'GET') return null;
  const key = keyOf(url, headers.get('X-Org-Id'));
  const answer = started.get(key);
  started.delete(key);
  return answer ?? null;
}
