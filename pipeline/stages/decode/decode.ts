// The first stage: an event of the log, in one of the ingest formats, becomes canonical spans.
// In: raw JSON as it was accepted. Out: one span (a chain also has a child for each step), priced, within the store's bounds,
// or a dead letter that says what is wrong. It never throws and reads no clock: the same event gives the same spans.
import { checkEvent, isIngestFormat, type EventOf, type IngestFormat } from '../../../schemas/formats/formats.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import type { Span } from '../../domain/span.ts';
import type { DecodedEvent, LoggedEvent, Outcome, Stage } from '../../stage.ts';
import { decodeApp } from './app.ts';
import { chainSteps, decodeChain } from './chain.ts';
import { decodeChatcompletion } from './chatcompletion.ts';
import { decodeCustom } from './custom.ts';
import type { Draft } from './draft.ts';
import { decodeMessages } from './messages.ts';
import { spanOf, type SpanDeps } from './span.ts';

const DECODERS: { [F in IngestFormat]: (event: EventOf<F>) => Draft } = {
  chatcompletion: decodeChatcompletion,
  messages: decodeMessages,
  chain: decodeChain,
  custom: decodeCustom,
  app: decodeApp,
};

/** maxPromptTokens: the org's max_prompt_tokens, null for none. */
export function createDecodeStage(deps: SpanDeps): Stage<LoggedEvent, DecodedEvent> {
  return { name: 'decode', run: (batch) => batch.map((event) => decodeOne(deps, event)) };
}

function decodeOne(deps: SpanDeps, logged: LoggedEvent): Outcome<DecodedEvent> {
  try {
    if (!isIngestFormat(logged.format)) return dead(`no decoder for the format ${logged.format}`);
    const spans = decodeAs(deps, logged, logged.format, JSON.parse(logged.body));
    if (typeof spans === 'string') return dead(spans);
    const { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at } = logged;
    return { kind: 'emit', out: { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at, spans } };
  } catch (error) {
    // A bug, or a body that no check foresaw: the event is kept with its reason, its neighbours go on.
    return dead(error instanceof Error ? error.message : String(error));
  }
}

/** The spans of an event, or what is wrong with it. */
function decodeAs<F extends IngestFormat>(deps: SpanDeps, logged: LoggedEvent, format: F, value: unknown): Span[] | string {
  const checked = checkEvent(format, value);
  if (!checked.ok) return `${checked.path}: ${checked.message}`;
  const times = checkTimes(checked.value, logged.received_at);
  if (!times.ok) return `${times.path}: ${times.message}`;
  const span = spanOf(deps, logged, checked.value, DECODERS[format](checked.value));
  return format === 'chain' ? [span, ...chainSteps(checked.value as EventOf<'chain'>, span, logged.body)] : [span];
}

function dead(detail: string): Outcome<DecodedEvent> {
  return { kind: 'dead', reason: 'decode_failed', detail };
}
