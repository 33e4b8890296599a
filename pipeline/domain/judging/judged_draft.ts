// Collects what judges will see of a trace, span by span while it is open: for each rule of
// judged_trace.ts, the span that leads so far. Pure. Spans may arrive in any order, from memory or
// from the store, whose texts are fetched once it is known which are needed; the result is the
// same.
import type { JudgedTrace } from './judged_trace.ts';
import type { SpanKind } from '../traces/span.ts';
import { durationMs, type TraceState } from '../traces/trace_state.ts';

/** Position of a span in its partition's ingest log: log_seq, log_index, log_sub. */
export type SpanPlace = readonly [number, number, number];

/** A text, or null for a non-empty text that is in the store. */
export type DraftText = string | null;

/** The fields of a span that a draft needs. Times are milliseconds since the epoch. */
export interface DraftSpan {
  place: SpanPlace;
  started_at: number;
  ended_at: number;
  is_root: boolean;
  kind: SpanKind;
  model: string;
  source_format: string;
  prompt: DraftText;
  response: DraftText;
  /**
   * Set on log records, whose texts no rule reads as those of a span: a message is one of its parent,
   * a line is neither asked nor answered.
   */
  record?: 'message' | 'line' | undefined;
  /** Parent of a message. */
  parent_span_id?: string | undefined;
  /** Name of a message. */
  name?: string | undefined;
  /** Null when the attributes are in the store. */
  attributes: Readonly<Record<string, unknown>> | null;
  /** Maximum bytes that the attributes take. */
  attribute_bytes: number;
}

/** A span that leads under one rule, with its text for that rule. */
interface Lead {
  span: Pick<DraftSpan, 'place' | 'started_at' | 'ended_at' | 'model'>;
  text: DraftText;
}

interface Head {
  place: SpanPlace;
  started_at: number;
  model: string;
  source_format: string;
  prompt: DraftText;
  response: DraftText;
  attributes: DraftSpan['attributes'];
  attribute_bytes: number;
}

/** What has been collected so far; a field is null while no span of its kind has arrived. */
export interface JudgedDraft {
  root: Head | null;
  first: Pick<Head, 'place' | 'started_at' | 'source_format' | 'attributes' | 'attribute_bytes'> | null;
  call_prompt: Lead | null;
  any_prompt: Lead | null;
  call_response: Lead | null;
  any_response: Lead | null;
  /** Messages that log records hold of spans, at most MESSAGES_MAX. */
  messages: DraftMessage[];
}

/** A message of a span, as a log record holds it. */
interface DraftMessage {
  place: SpanPlace;
  started_at: number;
  span_id: string;
  name: string;
  prompt: DraftText;
  response: DraftText;
}

/** Further messages of a trace are not judged. */
const MESSAGES_MAX = 1000;

export function emptyDraft(): JudgedDraft {
  return {
    root: null,
    first: null,
    call_prompt: null,
    any_prompt: null,
    call_response: null,
    any_response: null,
    messages: [],
  };
}

const comparePlaces = (a: SpanPlace, b: SpanPlace): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

type Started = Pick<DraftSpan, 'place' | 'started_at'>;
type Ended = Pick<DraftSpan, 'place' | 'ended_at'>;

/** Returns true when a starts before b; of equal starts, the earlier position wins. */
const isEarlier = (a: Started, b: Started): boolean =>
  a.started_at < b.started_at || (a.started_at === b.started_at && comparePlaces(a.place, b.place) < 0);
/** Returns true when a ends after b; of equal ends, the later position wins. */
const isLater = (a: Ended, b: Ended): boolean =>
  a.ended_at > b.ended_at || (a.ended_at === b.ended_at && comparePlaces(a.place, b.place) > 0);

/** Adds a span in place. */
export function addToDraft(draft: JudgedDraft, span: DraftSpan): void {
  const { place, started_at, ended_at, model, source_format, attributes, attribute_bytes } = span;
  if (draft.first === null || isEarlier(span, draft.first))
    draft.first = { place, started_at, source_format, attributes, attribute_bytes };
  if (span.is_root && (draft.root === null || isEarlier(span, draft.root))) {
    const { prompt, response } = span;
    draft.root = { place, started_at, model, source_format, prompt, response, attributes, attribute_bytes };
  }
  if (span.record !== undefined) {
    addMessage(draft, span);
    return;
  }
  const lead = { place, started_at, ended_at, model };
  if (span.prompt !== '') {
    if (draft.any_prompt === null || isEarlier(span, draft.any_prompt.span))
      draft.any_prompt = { span: lead, text: span.prompt };
    if (span.kind === 'llm' && (draft.call_prompt === null || isEarlier(span, draft.call_prompt.span)))
      draft.call_prompt = { span: lead, text: span.prompt };
  }
  if (span.response !== '') {
    if (draft.any_response === null || isLater(span, draft.any_response.span))
      draft.any_response = { span: lead, text: span.response };
    if (span.kind === 'llm' && (draft.call_response === null || isLater(span, draft.call_response.span)))
      draft.call_response = { span: lead, text: span.response };
  }
}

function addMessage({ messages }: JudgedDraft, span: DraftSpan): void {
  const { record, place, started_at, parent_span_id = '', name = '', prompt, response } = span;
  if (record !== 'message' || parent_span_id === '' || messages.length >= MESSAGES_MAX) return;
  messages.push({ place, started_at, span_id: parent_span_id, name, prompt, response });
}

const FRAME_BYTES = 800;
const MESSAGE_FRAME_BYTES = 200;

/**
 * Returns the maximum bytes of memory that a draft takes: two for each character of the leading
 * texts, plus the attributes of root and first.
 */
export function draftBytes(draft: JudgedDraft): number {
  const { root, first, call_prompt, any_prompt, call_response, any_response, messages } = draft;
  const place = root?.place;
  let chars = (root?.prompt?.length ?? 0) + (root?.response?.length ?? 0) + (root?.attribute_bytes ?? 0);
  // A span that leads under more than one rule has its text counted once.
  if (first !== null && first.place !== place) chars += first.attribute_bytes;
  chars += leadChars(any_prompt, place) + leadChars(any_response, place);
  chars +=
    leadChars(call_prompt, place, any_prompt?.span.place) + leadChars(call_response, place, any_response?.span.place);
  for (const { prompt, response } of messages) chars += (prompt?.length ?? 0) + (response?.length ?? 0);
  return FRAME_BYTES + MESSAGE_FRAME_BYTES * messages.length + 2 * chars;
}

const leadChars = (lead: Lead | null, ...counted: (SpanPlace | undefined)[]): number =>
  lead === null || counted.includes(lead.span.place) ? 0 : (lead.text?.length ?? 0);

/** A text that judges will see: the text itself, or the position of the stored span that has it. */
export type FoundText = string | { stored: SpanPlace };

/** Messages of one span, in the order in which they were said. */
export type FoundMessages = readonly { span_id: string; name: string; prompt: FoundText; response: FoundText }[];

export interface DraftFinding {
  prompt: FoundText;
  response: FoundText;
  model: string;
  source_format: string;
  /** Messages that give the prompt, and the response, where it is empty. */
  asked: FoundMessages;
  answered: FoundMessages;
  /** `stored` when the attributes have to be fetched. */
  attributes: { stored: SpanPlace } | { known: Readonly<Record<string, unknown>> };
}

/** Returns the messages of one span, by the choice of `better` among all messages. */
function messagesBy(
  messages: readonly DraftMessage[],
  side: 'prompt' | 'response',
  better: (a: DraftMessage, b: DraftMessage) => boolean,
): FoundMessages {
  const chosen = messages
    .filter((message) => message[side] !== '')
    .reduce<DraftMessage | null>((best, one) => (best === null || better(one, best) ? one : best), null);
  if (chosen === null) return [];
  return messages
    .filter(({ span_id }) => span_id === chosen.span_id)
    .toSorted((a, b) => a.started_at - b.started_at || comparePlaces(a.place, b.place))
    .map(({ span_id, name, prompt, response, place }) => ({
      span_id,
      name,
      prompt: found(prompt, place),
      response: found(response, place),
    }));
}

const found = (text: DraftText, place: SpanPlace): FoundText => text ?? { stored: place };

/** Returns the result of the spans collected so far. */
export function findingOf(draft: JudgedDraft): DraftFinding {
  const { root } = draft;
  const head = root ?? draft.first;
  const prompt = draft.call_prompt ?? draft.any_prompt;
  const response = draft.call_response ?? draft.any_response;
  const rootAnswers = root !== null && root.response !== '';
  const isAsked = (root !== null && root.prompt !== '') || draft.call_prompt !== null;
  const isAnswered = rootAnswers || draft.call_response !== null;
  return {
    asked: isAsked ? [] : messagesBy(draft.messages, 'prompt', isEarlier),
    answered: isAnswered ? [] : messagesBy(draft.messages, 'response', (a, b) => isEarlier(b, a)),
    prompt:
      root !== null && root.prompt !== ''
        ? found(root.prompt, root.place)
        : prompt === null
          ? ''
          : found(prompt.text, prompt.span.place),
    response: rootAnswers
      ? found(root.response, root.place)
      : response === null
        ? ''
        : found(response.text, response.span.place),
    model: rootAnswers ? root.model : (response?.span.model ?? ''),
    source_format: head?.source_format ?? '',
    attributes:
      head === null ? { known: {} } : head.attributes === null ? { stored: head.place } : { known: head.attributes },
  };
}

/** Returns the trace as judges see it, once every text has been fetched. */
export function judgedTraceOf(
  state: TraceState,
  texts: Pick<JudgedTrace, 'prompt' | 'response' | 'model' | 'source_format' | 'attributes'>,
): JudgedTrace {
  return {
    org_id: state.org_id,
    trace_id: state.trace_id,
    agent_id: state.agent_id,
    name: state.root_span_name,
    outcome: state.outcome,
    tags: state.tags,
    started_at: state.started_at,
    duration_ms: durationMs(state),
    input_tokens: state.input_tokens,
    output_tokens: state.output_tokens,
    cost_usd: Number(state.cost_pico_usd) / 1e12,
    ...texts,
  };
}
