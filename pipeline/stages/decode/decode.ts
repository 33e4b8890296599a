// The first stage: an event of the log, in one of the ingest formats, becomes canonical spans.
// In: raw JSON as it was accepted. Out: one span (a chain also has a child for each step), priced, within the store's bounds,
// or a dead letter that says what is wrong. It never throws and reads no clock: the same event gives the same spans.
import { checkEvent, isIngestFormat, type EventOf, type IngestFormat } from '../../../schemas/formats/formats.ts';
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import type { Span } from '../../domain/span.ts';
import type { DecodedEvent, LoggedEvent, Outcome, Stage } from '../../stage.ts';
import { decodeApp } from './app.ts';
import { decodeChain, stepSpans } from './chain.ts';
import { decodeChatcompletion } from './chatcompletion.ts';
import { decodeCustom } from './custom.ts';
import type { Draft, Fields } from './draft.ts';
import { decodeMessages } from './messages.ts';
import { spanOf, type SpanDeps } from './span.ts';

type Read = { ok: true; event: Fields; draft: Draft } | Refusal;

/** Checks a value against its format and gives what the format's decoder finds in it. */
function reader<F extends IngestFormat>(format: F, decode: (event: EventOf<F>) => Draft): (value: unknown) => Read {
  return (value) => {
    const checked = checkEvent(format, value);
    return checked.ok ? { ok: true, event: checked.value, draft: decode(checked.value) } : checked;
  };
}

const READERS: Readonly<Record<IngestFormat, (value: unknown) => Read>> = {
  chatcompletion: reader('chatcompletion', decodeChatcompletion),
  messages: reader('messages', decodeMessages),
  chain: reader('chain', decodeChain),
  custom: reader('custom', decodeCustom),
  app: reader('app', decodeApp),
};

/** maxPromptTokens: the org's max_prompt_tokens, null for none. */
export function createDecodeStage(deps: SpanDeps): Stage<LoggedEvent, DecodedEvent> {
  return { name: 'decode', run: (batch) => batch.map((event) => decodeOne(deps, event)) };
}

function decodeOne(deps: SpanDeps, logged: LoggedEvent): Outcome<DecodedEvent> {
  try {
    if (!isIngestFormat(logged.format)) return dead(`no decoder for the format ${logged.format}`);
    const spans = spansOf(deps, logged, logged.format, JSON.parse(logged.body));
    if (typeof spans === 'string') return dead(spans);
    const { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at } = logged;
    return { kind: 'emit', out: { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at, spans } };
  } catch (error) {
    // A bug, or a body that no check foresaw: the event is kept with its reason, its neighbours go on.
    return dead(error instanceof Error ? error.message : String(error));
  }
}

/** The spans of an event, or what is wrong with it. */
function spansOf(deps: SpanDeps, logged: LoggedEvent, format: IngestFormat, value: unknown): Span[] | string {
  const read = READERS[format](value);
  if (!read.ok) return `${read.path}: ${read.message}`;
  const times = checkTimes(read.event, logged.received_at);
  if (!times.ok) return `${times.path}: ${times.message}`;
  const span = spanOf(deps, logged, read.event, read.draft);
  return [span, ...stepSpans(read.draft.steps, span, logged.body)];
}

function dead(detail: string): Outcome<DecodedEvent> {
  return { kind: 'dead', reason: 'decode_failed', detail };
}
