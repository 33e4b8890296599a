// Makes the service's own calls of models and records each as a span through the ingest log, so
// that its tokens and cost are stored and metered as those of any other call. It takes a request with a key
// that stays the same when its task is repeated, and returns the answer. Guarantees: an answer is
// stored (bucket judging_answers, 24 h) before it is used, and recorded from there: a repeated task
// takes the same answer and publishes the same event, which the log deduplicates. Slots bound the
// calls under way, for each organization and in all. A call may repeat only when the process dies
// in the milliseconds between the upstream's answer and its storage; the first answer is then
// recorded nowhere. A call without an answer is not a span.
import { createHash } from 'node:crypto';
import { type ChatRequest, type Completion, readCompletion, type Upstream } from '../../ops/platform/llm/upstream.ts';
import { isLostWrite } from '../../ops/platform/nats/conflict.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { ingestSubject } from '../../schemas/streams.ts';
import { type IngestEvent, ingestBatchCodec } from '../../schemas/codec.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { chatcompletionEvent } from '../../schemas/formats/chatcompletion.ts';
import { eventHex, partitionOf } from '../domain/traces/ids.ts';
import type { FairSlots } from '../../ops/platform/fair_slots.ts';

const PUBLISH_TIMEOUT_MS = 5000;

export interface CallToRecord {
  org_id: string;
  /** Key of the call: the same in every process and at every repetition. */
  key: string;
  request: ChatRequest;
  /** Ids of the span, as ingest accepts them. */
  trace_id: string;
  span_id: string;
  parent_span_id?: string;
  attributes: Readonly<Record<string, unknown>>;
  /** Timeout of each attempt, milliseconds. */
  timeoutMs: number;
  /**
   * Reserves the call before the upstream is called; not called when an answer is stored. The
   * function that it returns releases the reservation when the call fails.
   */
  admit?: () => Promise<() => Promise<void>>;
}

export interface RecordedAnswer extends Completion {
  /** True when the answer was stored before, for a repeated task. */
  repeated: boolean;
  /** The event as it was recorded. */
  event: IngestEvent;
}

export interface RecordedCallsOptions {
  log: Log;
  upstream: Upstream;
  partitions: number;
  slots: FairSlots;
  /** Milliseconds since the epoch. */
  now: () => number;
  /**
   * Returns a value that changes when an organization is deleted: later answers are not recorded.
   * Unless given, no organization is ever deleted.
   */
  generationOf?: (org_id: string) => string;
  /** Receives the tokens of each new answer. */
  onAnswered?: (usage: { input_tokens: number; output_tokens: number }) => void;
}

export class RecordedCalls {
  readonly #options: RecordedCallsOptions;

  constructor(options: RecordedCallsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the answer is recorded.
   * @throws UpstreamFailed; errors of `admit`; Error when NATS does not answer, and the call is to
   * be retried
   */
  async call(call: CallToRecord, signal: AbortSignal): Promise<RecordedAnswer> {
    const { generationOf = () => '' } = this.#options;
    const generation = generationOf(call.org_id);
    const kept = await this.#kept(call);
    const body = kept ?? (await this.#options.slots.run(call.org_id, signal, () => this.#ask(call, signal)));
    if (generationOf(call.org_id) !== generation) throw new Error('the organization has been deleted');
    const event = await this.#record(call, body);
    const { response } = JSON.parse(body) as { response: unknown };
    return { ...readCompletion(response, call.request.model), repeated: kept !== null, event };
  }

  /** Resolves with the body of the event that was stored for a call. */
  async #kept(call: CallToRecord): Promise<string | null> {
    const entry = await (await this.#options.log.bucket('judging_answers')).get(answerKey(call));
    return entry?.operation === 'PUT' ? entry.string() : null;
  }

  async #ask(call: CallToRecord, signal: AbortSignal): Promise<string> {
    const { log, upstream, onAnswered } = this.#options;
    const takeBack = await call.admit?.();
    let answer;
    try {
      answer = await upstream.chat(call.request, { signal, timeoutMs: call.timeoutMs });
    } catch (error) {
      await takeBack?.();
      throw error;
    }
    onAnswered?.(answer.usage ?? { input_tokens: 0, output_tokens: 0 });
    const body = eventBody(call, answer.raw, answer);
    const answers = await log.bucket('judging_answers');
    try {
      await answers.create(answerKey(call), body);
      return body;
    } catch (error) {
      // Another process had the task and stored its answer first: that one counts.
      const first = isLostWrite(error) ? await this.#kept(call) : null;
      if (first === null) throw error;
      return first;
    }
  }

  async #record({ org_id, trace_id }: CallToRecord, body: string): Promise<IngestEvent> {
    const { log, partitions, now } = this.#options;
    const event_hex = eventHex(body);
    const event: IngestEvent = { org_id, format: 'chatcompletion', event_hex, trace_id, received_at: now(), body };
    const subject = ingestSubject(partitionOf(org_id, trace_id, partitions));
    await publishRecord(
      log,
      subject,
      ingestBatchCodec,
      { events: [event] },
      { msgID: `llm-${event_hex}`, timeoutMs: PUBLISH_TIMEOUT_MS },
    );
    return event;
  }
}

/** Returns the event of an answered call, as ingest would have accepted it. */
function eventBody(
  call: CallToRecord,
  raw: Completion['raw'],
  times: { started_at: number; ended_at: number },
): string {
  const event = {
    trace_id: call.trace_id,
    span_id: call.span_id,
    ...(call.parent_span_id === undefined ? {} : { parent_span_id: call.parent_span_id }),
    request: call.request,
    response: raw,
    outcome: 'success',
    started_at: new Date(times.started_at).toISOString(),
    ended_at: new Date(times.ended_at).toISOString(),
    attributes: call.attributes,
  };
  if (chatcompletionEvent.safeParse(event).success) return JSON.stringify(event);
  // Upstreams are not always fully compatible: only what is needed of the answer is kept, in a form
  // that can be stored.
  const { text, usage, model, finish_reason } = readCompletion(raw, call.request.model);
  const response = {
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason }],
    ...(usage === null ? {} : { usage: { prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens } }),
  };
  return JSON.stringify({ ...event, response });
}

const answerKey = ({ org_id, key }: Pick<CallToRecord, 'org_id' | 'key'>): string =>
  `${orgKey(org_id)}.${createHash('sha256').update(key).digest('hex')}`;
