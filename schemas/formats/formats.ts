// The ingest formats: which events a request body holds, and whether an event has its format's
// shape. The functions take parsed JSON and return the events as they were parsed, or a refusal
// that names the field. Nothing is copied, mapped or reordered, so that ids can be derived from the
// events.
import type { z } from 'zod';
import { appEvent } from './app.ts';
import { chainEvent } from './chain.ts';
import { chatcompletionEvent } from './chatcompletion.ts';
import { compileCheck } from './compiled_check.ts';
import { customEvent } from './custom.ts';
import { messagesEvent } from './messages.ts';
import type { Refusal } from './refusal.ts';

export type IngestFormat = 'chatcompletion' | 'messages' | 'chain' | 'custom' | 'app';

/**
 * Schemas of one event of each format: /openapi.json shows them, and refusals are explained by
 * them.
 */
export const EVENT_SCHEMAS = {
  chatcompletion: chatcompletionEvent,
  messages: messagesEvent,
  chain: chainEvent,
  custom: customEvent,
  app: appEvent,
} as const satisfies Record<IngestFormat, z.ZodType>;

/** Maximum number of events of one request. */
export const BATCH_EVENTS_MAX = 1000;

/** An event of the shape of its format. */
export type EventOf<F extends IngestFormat> = z.infer<(typeof EVENT_SCHEMAS)[F]>;

export function isIngestFormat(text: string): text is IngestFormat {
  return Object.hasOwn(EVENT_SCHEMAS, text);
}

/**
 * Returns the events of a request body. custom and app accept {events: […]} of 1 to 1000; custom
 * also accepts a single event object; the other formats are one event. The events themselves are
 * not checked.
 */
export function splitBody(
  format: IngestFormat,
  body: unknown,
): { ok: true; events: readonly unknown[]; batch: boolean } | Refusal {
  if (!isObject(body)) return { ok: false, path: '', message: 'must be a JSON object' };
  if (format !== 'custom' && format !== 'app') return { ok: true, events: [body], batch: false };
  const events = body['events'];
  if (format === 'custom' && !Array.isArray(events) && (body['event_type'] != null || body['name'] != null)) {
    return { ok: true, events: [body], batch: false };
  }
  if (!Array.isArray(events)) return { ok: false, path: 'events', message: 'must be a list of events' };
  if (events.length === 0) return { ok: false, path: 'events', message: 'must have at least one event' };
  if (events.length > BATCH_EVENTS_MAX) {
    return {
      ok: false,
      path: 'events',
      message: `must have at most ${BATCH_EVENTS_MAX} events, got ${events.length}`,
    };
  }
  return { ok: true, events, batch: true };
}

const compiled = new Map<IngestFormat, (value: unknown) => boolean>();

/** Returns the compiled check of a format. The first call compiles it, within some milliseconds. */
function compiledCheck(format: IngestFormat): (value: unknown) => boolean {
  let check = compiled.get(format);
  if (check === undefined) compiled.set(format, (check = compileCheck(EVENT_SCHEMAS[format])));
  return check;
}

/**
 * Compiles the checks of all formats. On a busy machine this takes long enough that the first callers of a process
 * would be throttled for the time of the event loop that it takes, so call it before the process takes requests.
 */
export function compileChecks(): void {
  // An event without fields also prepares the explanation of a refusal.
  for (const format of Object.keys(EVENT_SCHEMAS).filter(isIngestFormat)) checkEvent(format, {});
}

/** Checks the shape of one event, and returns the very object that was checked. */
export function checkEvent<F extends IngestFormat>(
  format: F,
  value: unknown,
): { ok: true; value: EventOf<F> } | Refusal {
  if (compiledCheck(format)(value)) return { ok: true, value: value as EventOf<F> };
  const result = EVENT_SCHEMAS[format].safeParse(value);
  if (result.success) return { ok: true, value: value as EventOf<F> };
  return explain(result.error.issues[0]);
}

function explain(issue: z.core.$ZodIssue | undefined): Refusal {
  if (issue === undefined) return { ok: false, path: '', message: 'is not an event of this format' };
  let path = '';
  for (const key of issue.path) path += typeof key === 'number' ? `[${key}]` : (path === '' ? '' : '.') + String(key);
  return { ok: false, path, message: issue.message.replace(/^Invalid input: /, '') };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
