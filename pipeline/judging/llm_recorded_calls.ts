// Calls of models that the service makes itself, each recorded as a span through the ingest log, so that its tokens and cost are stored,
// metered and shown as any other's. In: a request under a key that is the same however often its task is repeated. Out: the answer.
// Guarantees: an answer is kept (bucket judging_answers, 24 h) before anything is done with it, and recorded from there: a task that comes
// again takes the same answer and sends the same event, which the log knows as one. Of each org only so many calls run at a time, and of
// all, whoever asks. What can repeat: a process that dies after the upstream has answered and before the answer is kept, some
// milliseconds, calls again; the first answer then is recorded nowhere. A call that is not answered is no span.
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
  /** Names the call, whatever process makes it and however often. */
  key: string;
  request: ChatRequest;
  /** Of the span; ids as ingest takes them. */
  trace_id: string;
  span_id: string;
  parent_span_id?: string;
  attributes: Readonly<Record<string, unknown>>;
  /** Of each try, milliseconds. */
  timeoutMs: number;
  /** Asked before the upstream is, when there is no answer yet; what it gives takes its yes back when the call fails. */
  admit?: () => Promise<() => Promise<void>>;
}

export interface RecordedAnswer extends Completion {
  /** Whether it was answered before, for a task that comes again. */
  repeated: boolean;
  /** As it was recorded. */
  event: IngestEvent;
}

export interface RecordedCallsOptions {
  log: Log;
  upstream: Upstream;
  partitions: number;
  slots: FairSlots;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Changes when an org is deleted: what is answered after that is not recorded. Left out, no org is ever deleted. */
  generationOf?: (org_id: string) => string;
  /** Told of each new answer. */
  onAnswered?: (usage: { input_tokens: number; output_tokens: number }) => void;
}

export class RecordedCalls {
  readonly #options: RecordedCallsOptions;

  constructor(options: RecordedCallsOptions) {
    this.#options = options;
  }

  /** Resolves when the answer is recorded. @throws UpstreamFailed; what admit throws; Error when NATS does not answer: to be tried again */
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

  /** The body of the event that was kept for a call. */
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
      // Somebody else was given the task and was answered first: one answer holds.
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

/** The event of an answered call, as ingest would have taken it. */
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
  // An upstream that is compatible only nearly: what is needed of its answer, in the form that can be stored.
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
