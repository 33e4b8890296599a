// The first step of every event: raw JSON in one of the formats becomes canonical spans. In: an
// accepted event. Out: its spans (one; a chain also has a child for each step), priced and within
// the store's bounds, or the reason why it is invalid. It reads no clock: the same event gives the
// same spans in every process.
import type { SourceFormat } from '../../../schemas/codec.ts';
import { checkEvent, type EventOf, type IngestFormat } from '../../../schemas/formats/formats.ts';
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import type { Redaction } from '../pii/pii.ts';
import type { Span } from '../traces/span.ts';
import { wellFormedJson } from '../text/well_formed.ts';
import { decodeApp } from './app.ts';
import { decodeChain, stepSpans } from './chain.ts';
import { decodeChatcompletion } from './chatcompletion.ts';
import { decodeCustom } from './custom.ts';
import type { Draft, Fields } from './draft.ts';
import { readGateway } from './gateway.ts';
import { decodeMessages } from './messages.ts';
import { readOtlp } from './otlp.ts';
import { redactedSteps } from './redact.ts';
import { type RawEvent, spanOf, type SpanDeps } from './span.ts';

type Read = { ok: true; event: Fields; draft: Draft } | Refusal;

/** Returns a reader that validates a value against its format and decodes it. */
function reader<F extends IngestFormat>(format: F, decode: (event: EventOf<F>) => Draft): (value: unknown) => Read {
  return (value) => {
    const checked = checkEvent(format, value);
    return checked.ok ? { ok: true, event: checked.value, draft: decode(checked.value) } : checked;
  };
}

const READERS: Readonly<Partial<Record<SourceFormat, (value: unknown, receivedAt: number) => Read>>> = {
  chatcompletion: reader('chatcompletion', decodeChatcompletion),
  messages: reader('messages', decodeMessages),
  chain: reader('chain', decodeChain),
  custom: reader('custom', decodeCustom),
  app: reader('app', decodeApp),
  otlp: readOtlp,
  gateway: readGateway,
};

/**
 * Returns the spans of an event, its own span first, or the reason why it is invalid. Personal data
 * is redacted by the organization's policy.
 * @param redaction redaction in progress for this event; by default a new one begins
 */
export function spansOf(
  deps: SpanDeps,
  raw: RawEvent,
  value: unknown,
  redaction: Redaction | null = deps.redactorOf(raw.org_id)?.begin() ?? null,
): Span[] | string {
  const readAs = Object.hasOwn(READERS, raw.format) ? READERS[raw.format] : undefined;
  if (readAs === undefined) return `no decoder for the format ${raw.format}`;
  // Ids are hashes of the body as received; the stored values contain no unpaired surrogates.
  const sound = wellFormedJson(raw.body);
  const read = readAs(sound === raw.body ? value : JSON.parse(sound), raw.received_at);
  if (!read.ok) return `${read.path}: ${read.message}`;
  const times = checkTimes(read.event, raw.received_at);
  if (!times.ok) return `${times.path}: ${times.message}`;
  const span = spanOf(deps, raw, read.event, read.draft, redaction);
  const tokensMax = deps.maxPromptTokens(raw.org_id);
  if (redaction === null) return [span, ...stepSpans(read.draft.steps, span, raw.body, tokensMax)];
  const steps = redactedSteps(read.draft.steps, redaction);
  const children = stepSpans(
    steps.map(({ step }) => step),
    span,
    raw.body,
    tokensMax,
  );
  return [span, ...children.map((child, index) => ({ ...child, redacted: steps[index]?.kinds ?? [] }))];
}
