// What of the service is away, as GET /readyz says. A failed request starts the checks, which go on until everything
// answers again; an idle page of a healthy service asks nothing. The banner shows the state, and the cache reads again
// what failed once the service has recovered.
import type { RequestError } from './error.ts';

/** silent: no answer at all; nats, store, workers: that part of the service is down. */
export type Health = 'ok' | 'silent' | 'nats' | 'store' | 'workers';

const CHECK_MS = 2000;
const ANSWER_MS_MAX = 5000;
/** Checks in a row that find every part of the service before a failed request counts as an accident. */
const SOUND_CHECKS = 4;

type Listener = () => void;
const listeners = new Set<Listener>();
const recoveries = new Set<Listener>();
let health: Health = 'ok';
let checking = false;

export const currentHealth = (): Health => health;

/** Calls a listener after each change; returns the function that ends that. */
export function onHealthChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls a listener each time that the whole service answers again. */
export function onRecovery(listener: Listener): void {
  recoveries.add(listener);
}

/** Starts the checks if a request failed because a part of the service may be away. */
export function noteFailure({ status, code }: Pick<RequestError, 'status' | 'code'>): void {
  if (status === 0 || status === 502 || status === 503 || code === 'upstream_unavailable') void check();
}

/** Resolves once the service answers. */
export async function serviceAnswers(): Promise<void> {
  while ((await readHealth()) === 'silent') await pause();
}

async function check(): Promise<void> {
  if (checking) return;
  checking = true;
  let wasAway = false;
  for (let sound = 0; sound < SOUND_CHECKS;) {
    const now = await readHealth();
    if (now !== health) {
      health = now;
      for (const listener of listeners) listener();
    }
    wasAway ||= now !== 'ok';
    // A process notices a part that hangs some seconds after its requests have failed.
    sound = now !== 'ok' ? 0 : wasAway ? SOUND_CHECKS : sound + 1;
    if (sound < SOUND_CHECKS) await pause();
  }
  checking = false;
  if (wasAway) for (const listener of recoveries) listener();
}

async function readHealth(): Promise<Health> {
  try {
    const answer = await fetch('/readyz', { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    return healthOf(await answer.json());
  } catch {
    return 'silent';
  }
}

/** Returns what an answer of GET /readyz says; an answer of something else, such as a proxy, counts as silence. */
function healthOf(body: unknown): Health {
  if (typeof body !== 'object' || body === null || !('checks' in body)) return 'silent';
  const { nats, clickhouse, consumers } = body.checks as Readonly<Record<string, unknown>>;
  if (nats === 'down') return 'nats';
  if (clickhouse === 'down') return 'store';
  return consumers === 'down' ? 'workers' : 'ok';
}

async function pause(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setTimeout(resolve, CHECK_MS, undefined);
  await promise;
}
