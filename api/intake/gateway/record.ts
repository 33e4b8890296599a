// Makes the event of a call through the gateway: its request, its answer and its labels. Takes the
// call and how it ended; returns an event of the log whose body the pipeline can decode, whatever
// the caller or the upstream wrote.
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { eventHex, partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { deeperThan, DEPTH_MAX } from '../../../pipeline/domain/text/nesting.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { checkEvent } from '../../../schemas/formats/formats.ts';
import { gatewayEvent } from '../../../schemas/formats/gateway.ts';
import type { Operation } from './call.ts';
import type { CallLabels } from './labels.ts';
import { type Fields, isFields } from './values.ts';

/** Room for the envelope of an event in its message. */
const ENVELOPE_BYTES_MAX = 4096;
/**
 * Maximum JSON characters kept, as prompt or response, of a request or an answer that cannot be
 * stored as it is.
 */
const KEPT_CHARS_MAX = 100_000;
/** Maximum characters of a model's name in a record. */
export const NAME_LENGTH_MAX = 1024;
/** Model of a call that names none. */
export const NO_MODEL = 'unknown';

type RecordFormat = 'chatcompletion' | 'messages' | 'gateway';

const FORMATS: Readonly<Record<Operation, RecordFormat>> = {
  chat: 'chatcompletion',
  messages: 'messages',
  responses: 'gateway',
  embeddings: 'gateway',
};
const NOTHING_SAID: Readonly<Record<Operation, Fields>> = {
  chat: { choices: [] },
  messages: { content: [] },
  responses: {},
  embeddings: {},
};

/** A call that has ended. */
export interface EndedCall {
  org_id: string;
  operation: Operation;
  labels: CallLabels;
  /** Request as it was sent to the upstream that answered. */
  request: Fields;
  /** Null where no answer arrived. */
  response: unknown;
  outcome: 'success' | 'error' | 'timeout';
  /** Milliseconds since the epoch. */
  started_at: number;
  ended_at: number;
  /** Attributes besides the labels. */
  attributes: Readonly<Record<string, unknown>>;
}

/** An event about to be published. */
export interface RecordedEvent {
  event: IngestEvent;
  partition: number;
  bytes: number;
  /** The body of the event before it became text. */
  parsed?: Fields;
}

/**
 * Returns the event of a call. A request or an answer that the store could not take is kept as
 * text, as far as there is room.
 */
export function recordOf(call: EndedCall, partitions: number): RecordedEvent {
  const format = FORMATS[call.operation];
  const { text: body, parsed } =
    firstStorable(format, call) ?? asText(bodyOf(call, bareRequest(call), bareResponse(call)));
  const hex = eventHex(body);
  const { org_id, labels, ended_at } = call;
  return {
    event: { org_id, format, event_hex: hex, trace_id: labels.trace_id, received_at: ended_at, body },
    partition: partitionOf(org_id, labels.trace_id, partitions),
    bytes: body.length,
    parsed,
  };
}

/** A body as compact JSON, and what it was made of. */
interface Body {
  text: string;
  parsed: Fields;
}

const asText = (body: Fields): Body => ({ text: JSON.stringify(body), parsed: body });

/** Returns the body that keeps the most of a call. */
function firstStorable(format: RecordFormat, call: EndedCall): Body | null {
  const { request, response } = call;
  const asIs = storable(format, bodyOf(call, request, response));
  if (asIs !== null) return asIs;
  const plain = { request: plainRequest(call), response: plainResponse(call) };
  return (
    storable(format, bodyOf(call, request, plain.response)) ??
    storable(format, bodyOf(call, plain.request, response)) ??
    storable(format, bodyOf(call, plain.request, plain.response))
  );
}

/** Returns the body as compact JSON; null where the pipeline or the log would not take it. */
function storable(format: RecordFormat, body: Fields): Body | null {
  const fits = format === 'gateway' ? gatewayEvent.safeParse(body).success : checkEvent(format, body).ok;
  if (!fits || deeperThan(body, DEPTH_MAX)) return null;
  const made = asText(body);
  return Buffer.byteLength(made.text) > MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX ? null : made;
}

function bodyOf(call: EndedCall, request: Fields, response: unknown): Record<string, unknown> {
  const { operation, labels, outcome, started_at, ended_at } = call;
  const { trace_id, span_id, parent_span_id, agent_id, session_id, user_id, tags, attributes } = labels;
  return {
    ...(FORMATS[operation] === 'gateway' ? { operation } : {}),
    request,
    ...(response === null ? {} : { response }),
    trace_id,
    span_id,
    ...(parent_span_id === null ? {} : { parent_span_id }),
    ...(tags.length === 0 ? {} : { tags }),
    outcome,
    duration_ms: Math.max(0, ended_at - started_at),
    started_at: new Date(started_at).toISOString(),
    ended_at: new Date(ended_at).toISOString(),
    attributes: {
      ...(agent_id === null ? {} : { agent_id }),
      ...(session_id === null ? {} : { session_id }),
      ...(user_id === null ? {} : { user_id }),
      ...attributes,
      ...call.attributes,
    },
  };
}

/** Returns a request that holds only its text. */
function plainRequest(call: EndedCall): Fields {
  const bare = bareRequest(call);
  const text = keptText(call.request);
  if (text === '') return bare;
  return hasMessages(call) ? { ...bare, messages: [{ role: 'user', content: text }] } : { ...bare, input: text };
}

/**
 * Returns an answer that holds only its text and its usage. Usage that a failed call does not
 * report counts as none.
 */
function plainResponse(call: EndedCall): Fields | null {
  const bare = bareResponse(call);
  const text = call.response === null ? '' : keptText(call.response);
  if (text === '') return bare;
  const said = answerOf(call.operation, text);
  if (call.outcome === 'success') return { ...bare, ...said };
  const nothing =
    call.operation === 'chat'
      ? { prompt_tokens: 0, completion_tokens: 0 }
      : { prompt_tokens: 0, input_tokens: 0, output_tokens: 0 };
  return { ...said, usage: { ...nothing, ...countsIn(call.response) } };
}

/** Returns an answer of the operation that holds a text. */
function answerOf(operation: Operation, text: string): Fields {
  if (operation === 'chat') return { choices: [{ index: 0, message: { role: 'assistant', content: text } }] };
  return operation === 'messages' ? { content: [{ type: 'text', text }] } : { output_text: text };
}

const hasMessages = ({ operation }: Pick<EndedCall, 'operation'>): boolean => FORMATS[operation] !== 'gateway';

/** Returns a request that holds only the model and the usage: it always fits. */
function bareRequest(call: EndedCall): Fields {
  const { request } = call;
  const given = request['model'];
  const model = typeof given === 'string' && given !== '' ? given.slice(0, NAME_LENGTH_MAX) : NO_MODEL;
  return hasMessages(call) ? { model, messages: [] } : { model };
}

function bareResponse({ operation, response, outcome }: EndedCall): Fields | null {
  const usage = countsIn(response);
  if (usage === null && outcome !== 'success') return null;
  return { ...NOTHING_SAID[operation], ...(usage === null ? {} : { usage }) };
}

/** Returns the counts in an answer's usage; null where it has no usage. */
function countsIn(response: unknown): Fields | null {
  if (!isFields(response) || !isFields(response['usage'])) return null;
  const isCount = (value: unknown) =>
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 1_000_000_000;
  return Object.fromEntries(Object.entries(response['usage']).filter(([, value]) => isCount(value)));
}

function keptText(value: unknown): string {
  try {
    return JSON.stringify(value).slice(0, KEPT_CHARS_MAX).toWellFormed();
  } catch {
    // The value is nested too deep for JSON.stringify.
    return '';
  }
}
