// One connection to GET /v1/live. It reconnects with a delay that doubles, ends for good where the
// service refuses the person, and reports `resync` once it is connected, because changes may have been missed before.
// It reports `lost` when it is cut and cannot be opened again at once.
import { SseParser, type SseMessage } from './sse.ts';

const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
/** Connections that failed in a row before the stream counts as lost: a restart of the service takes one. */
const LOST_AFTER = 2;
/** Statuses after which another try gives the same answer. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404, 422]);

export interface LiveEvent {
  name: string;
  data: unknown;
}

/** A stream: an organization, and the topics and filters as a query string. */
export interface LiveStream {
  org_id: string;
  query: string;
}

/** Follows a stream until the signal aborts, or until the service refuses it. */
export async function follow(
  { org_id, query }: LiveStream,
  onEvent: (event: LiveEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  let delay_ms = RETRY_MS;
  let failures = 0;
  const receive = ({ event, data }: SseMessage): void => {
    delay_ms = RETRY_MS;
    failures = 0;
    if (event === 'ready') onEvent({ name: 'resync', data: { reason: 'connected' } });
    onEvent({ name: event, data: parsed(data) });
  };
  while (!signal.aborted) {
    try {
      const answer = await fetch(`/v1/live?${query}`, {
        headers: { Accept: 'text/event-stream', 'X-Org-Id': org_id },
        cache: 'no-store',
        signal,
      });
      if (REFUSED.has(answer.status)) return;
      if (answer.ok && answer.body !== null) await read(answer.body, receive);
      else await answer.body?.cancel();
    } catch {
      // The connection broke, or the signal aborted: the loop decides.
    }
    failures += 1;
    if (failures === LOST_AFTER) onEvent({ name: 'lost', data: null });
    await pause(delay_ms, signal);
    delay_ms = Math.min(RETRY_MS_MAX, delay_ms * 2);
  }
}

async function read(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  receive: (message: SseMessage) => void,
): Promise<void> {
  const parser = new SseParser();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const message of parser.push(value)) receive(message);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** Resolves after a time, or at once when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => {
    resolve(undefined);
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
}
