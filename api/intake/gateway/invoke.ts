// One call of a model, end to end: budget, upstreams in their order, answer, record. An admitted
// call is recorded and settled however it ends, also when its caller disconnects. Its reservation
// is released only once its use is counted. The next upstream is asked only before the caller has
// received anything, and no upstream twice.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import type { CaptureMode } from '../../../schemas/records/api_key.ts';
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { ApiError } from '../../http/errors.ts';
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { type AnswerHead, AnswerReader, type ReadAnswer } from './answer.ts';
import { bodyFor, type GatewayCall } from './call.ts';
import { AnswerKeeper, type CachedAnswer, type CacheKey, type ResponseCache } from './cache.ts';
import { relay, type RelayEnding } from './exchange.ts';
import { type GuardNote } from './guards.ts';
import { GuardedAnswer } from './guarded_answer.ts';
import { answerHeaders, headersFor } from './headers.ts';
import { type EndedCall, type RecordedEvent, recordOf } from './record.ts';
import { usageRecordOf } from './usage_record.ts';
import type { RecordReservation } from './recorder.ts';
import type { Estimate, Estimates } from './reserve.ts';
import { ask, type UpstreamAnswer } from './upstream.ts';

/** Returns true for statuses after which the next upstream is asked. */
const isBusy = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/**
 * Returns true for an answer that counts against the upstream. A caller's own credential can run out
 * of its rate while the upstream serves others.
 */
const isFailure = (status: number, { credential }: GatewayTarget): boolean =>
  isBusy(status) && !(status === 429 && credential === 'caller');

export interface InvokeDeps {
  /**
   * Reserves the use of an event, whatever the limits are. Null: no hard limit applies to the
   * organization.
   */
  countUse: (org_id: string, event: RecordedEvent) => RecordReservation | null;
  recorder: { add: (event: RecordedEvent, reservation: RecordReservation | null) => void };
  estimates: Estimates;
  partitions: number;
  cache: Pick<ResponseCache, 'put'>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Called with how each call ended. */
  observeCall: (operation: string, outcome: string) => void;
}

export interface Invocation {
  org_id: string;
  /** usage: the record holds no content. */
  capture: CaptureMode;
  /** Place of the answer in the cache; null where the caller asks for none. */
  cacheKey: CacheKey | null;
  /** Judges that guard the response; the answer is held until they have passed it. */
  guards: readonly JudgeRecord[];
  /** Guards that acted on the prompt. */
  notes: readonly GuardNote[];
  call: GatewayCall;
  targets: readonly GatewayTarget[];
  /** Path below an upstream's base URL. */
  path: string;
  req: IncomingMessage;
  res: ServerResponse;
  /** Parts of every response to the request. */
  answering: {
    request_id: string;
    headers: readonly string[];
    admission: Pick<AdmissionRequest, 'committing' | 'release' | 'stamp'>;
  };
}

/** How a call ended, for its record. */
interface Ended extends ReadAnswer {
  /** The target that answered, or was asked last; null where none was asked. */
  target: GatewayTarget | null;
  /** Upstreams that were asked before, with what came of each. */
  tried: readonly string[];
  firstTokenAt: number | null;
  /** The upstream's own id of its answer. */
  upstream_request_id: string | null;
}

/** No upstream has answered: the error of the gateway, and what is recorded. */
class Unanswered extends ApiError {
  readonly ended: Ended;

  constructor(ended: Ended, cause: unknown) {
    const detail =
      ended.outcome === 'timeout'
        ? 'The upstream did not answer in time.'
        : 'The upstream cannot be reached, or broke off the connection.';
    super('upstream_unavailable', detail, { cause });
    this.ended = ended;
  }
}

/** A guard withholds the answer: the error for the caller, and what is recorded. */
class Withheld extends ApiError {
  readonly ended: Ended;

  constructor(ended: Ended, { code, detail }: ApiError) {
    super(code, detail);
    this.ended = ended;
  }
}

/**
 * Makes the call.
 * @throws ApiError of the budget; upstream_unavailable where no upstream answers
 */
export async function invoke(invocation: Invocation, deps: InvokeDeps): Promise<void> {
  const { org_id, call } = invocation;
  const started_at = deps.now();
  const began = performance.now();
  const reserved: { estimate: Estimate | null } = { estimate: null };
  const waits = invocation.answering.admission.committing(() => {
    reserved.estimate = deps.estimates.of(org_id, call, started_at, deps.partitions);
    return [reserved.estimate.call];
  });
  if (waits !== null) await waits;
  let ended: Ended = {
    target: null,
    tried: [],
    firstTokenAt: null,
    upstream_request_id: null,
    response: null,
    outcome: 'error',
    attributes: {},
  };
  try {
    ended = await converse(invocation, deps);
  } catch (error) {
    if (error instanceof Unanswered || error instanceof Withheld) ended = error.ended;
    else ended.attributes['error_message'] = 'The call failed inside the gateway.';
    throw error;
  } finally {
    const took = performance.now() - began;
    settle(invocation, deps, { ended, started_at, took, began, estimate: reserved.estimate });
  }
}

/**
 * Asks the upstreams in turn until one answers, and passes its answer on.
 * @throws Unanswered
 */
async function converse(invocation: Invocation, { cache }: Pick<InvokeDeps, 'cache'>): Promise<Ended> {
  const { call, targets, path, req, res } = invocation;
  const tried: string[] = [];
  const endOf = (target: GatewayTarget, read: ReadAnswer, more: Partial<Ended> = {}): Ended => ({
    ...read,
    target,
    tried,
    firstTokenAt: null,
    upstream_request_id: null,
    ...more,
  });
  const queue = targets.map((target) => ({ target, waited: false }));
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { target, waited } = next;
    const isLast = queue.length === 0;
    // An upstream that keeps failing is asked after all others.
    if (!isLast && !waited && !target.circuit.admits()) {
      queue.push({ target, waited: true });
      continue;
    }
    const headers = headersFor(req.headers, target);
    const begun = await ask(target, { method: 'POST', path, headers, body: bodyFor(call, target) }, res);
    if (begun.answer === null) {
      const read = unansweredRead(call, begun.failed);
      if (begun.failed !== 'gone') target.circuit.failed();
      if (begun.failed === 'gone') return endOf(target, read);
      if (isLast) throw new Unanswered(endOf(target, read), begun.cause);
      tried.push(`${target.base_url.origin}: ${begun.failed}`);
      continue;
    }
    const { answer } = begun;
    const { status } = answer;
    if (isFailure(status, target)) target.circuit.failed();
    else target.circuit.succeeded();
    if (isBusy(status) && !isLast) {
      answer.abort();
      tried.push(`${target.base_url.origin}: ${status}`);
      continue;
    }
    const { ending, toCaller, fromUpstream, reader, kept, guarded } = await passOn(invocation, target, answer);
    if (ending === 'lost' || ending === 'timeout') target.circuit.failed();
    const unanswered = (ending === 'lost' || ending === 'timeout') && !toCaller;
    if (unanswered && !fromUpstream && !isLast) {
      tried.push(`${target.base_url.origin}: ${ending}`);
      continue;
    }
    const read = guarded?.read() ?? reader.read(ending === 'withheld' ? 'complete' : ending);
    const ended = endOf(target, read, {
      firstTokenAt: reader.firstTokenAt,
      upstream_request_id: requestIdOf(answer),
    });
    if (unanswered) throw new Unanswered(ended, null);
    if (guarded?.error != null) throw new Withheld(ended, guarded.error);
    if (invocation.cacheKey !== null && kept !== null && status === 200 && ended.outcome === 'success')
      cache.put(invocation.cacheKey, kept);
    // A response that has begun cannot become an error any more; closing the connection tells the
    // caller.
    if (ending !== 'complete') res.destroy();
    return ended;
  }
  throw new ApiError('upstream_not_configured', 'No upstream is configured for this model.');
}

/**
 * Returns what is recorded where no answer has begun. The model may have read the prompt of a
 * caller that disconnected.
 */
function unansweredRead(call: GatewayCall, failed: 'lost' | 'timeout' | 'gone'): ReadAnswer {
  const read = new AnswerReader(call, { status: 0, isStream: false, isPlain: false, isHtml: false }, () => 0).read(
    failed,
  );
  delete read.attributes['http_status'];
  return read;
}

const REQUEST_ID_LENGTH_MAX = 256;

/** Returns the id that the upstream gave the request: clients log it, so it joins their logs to the call. */
function requestIdOf(answer: UpstreamAnswer): string | null {
  const given = answer.header('request-id') ?? answer.header('x-request-id');
  return given !== undefined && given !== '' && given.length <= REQUEST_ID_LENGTH_MAX ? given : null;
}

interface Passed {
  ending: RelayEnding;
  /** True if the caller received any of the answer. */
  toCaller: boolean;
  /** True if the upstream sent any of the body. */
  fromUpstream: boolean;
  reader: AnswerReader;
  /** The answer as the caller got it; null where it is not to be cached. */
  kept: CachedAnswer | null;
  /** The answer as guards have decided on it; null where none guards it. */
  guarded: GuardedAnswer | null;
}

async function passOn(
  { org_id, call, res, answering, cacheKey, guards }: Invocation,
  { timeout_ms }: GatewayTarget,
  answer: UpstreamAnswer,
): Promise<Passed> {
  const head = headOf(answer);
  const reader = new AnswerReader(call, head, () => performance.now(), org_id);
  const guarded = guards.length === 0 ? null : new GuardedAnswer(guards, head, reader);
  const keeper = cacheKey !== null && head.isPlain ? new AnswerKeeper() : null;
  const keep = (bytes: Buffer): Buffer => {
    keeper?.add(bytes);
    return bytes;
  };
  let fromUpstream = false;
  const { ending, begun: toCaller } = await relay(answer, res, {
    timeout_ms,
    streamed: head.isStream,
    begin: (length) => {
      const passed = answerHeaders(answer.rawHeaders, length !== null || (head.isStream && call.asksUsage));
      if (length !== null) passed.push('Content-Length', String(length));
      res.writeHead(head.status, [...passed, ...answering.headers, REQUEST_ID_HEADER, answering.request_id]);
    },
    take: (chunk) => {
      fromUpstream = true;
      return keep(reader.take(chunk));
    },
    rest: () => keep(reader.rest()),
    decide: guarded === null ? null : (whole) => guarded.decide(whole),
  });
  const kept = keeper?.answer(answer.header('content-type') ?? '') ?? null;
  return { ending, toCaller, fromUpstream, reader, kept, guarded };
}

function headOf(answer: UpstreamAnswer): AnswerHead {
  const encoding = answer.header('content-encoding') ?? 'identity';
  const isPlain = encoding === '' || encoding === 'identity';
  const type = (answer.header('content-type') ?? '').toLowerCase();
  return {
    status: answer.status,
    isPlain,
    isStream: isPlain && type.startsWith('text/event-stream'),
    isHtml: type.startsWith('text/html'),
  };
}

/** Returns the guards that acted on the prompt and on the response. */
function guardsIn(notes: readonly GuardNote[], { guards }: Readonly<Record<string, unknown>>): object {
  const all: unknown[] = [...notes, ...(Array.isArray(guards) ? (guards as unknown[]) : [])];
  return all.length === 0 ? {} : { guards: all };
}

interface Settling {
  ended: Ended;
  /** Milliseconds since the epoch. */
  started_at: number;
  /** Duration of the whole call, milliseconds. */
  took: number;
  /** Start of the call, on the clock of firstTokenAt. */
  began: number;
  /**
   * Estimate that the budget has reserved; null: no hard limit applied to the organization when the
   * call began.
   */
  estimate: Estimate | null;
}

/**
 * Counts the use, releases the reservation and enqueues the record, in this order and in one turn
 * of the event loop.
 */
function settle(
  { org_id, call, answering, capture, notes }: Invocation,
  deps: InvokeDeps,
  { ended, started_at, took, began, estimate }: Settling,
): void {
  const { target, tried, firstTokenAt, upstream_request_id, response, outcome, attributes } = ended;
  const other = target?.model ?? null;
  const ended_at = started_at + Math.round(took);
  const record: EndedCall = {
    org_id,
    operation: call.operation,
    labels: call.labels,
    // The price is that of the model that the target was asked for.
    request: other === null ? call.request : { ...call.request, model: other },
    response,
    outcome,
    started_at,
    ended_at,
    attributes: {
      ...attributes,
      ...guardsIn(notes, attributes),
      gateway: true,
      request_id: answering.request_id,
      ...(target === null ? {} : { upstream: target.base_url.origin }),
      ...(upstream_request_id === null ? {} : { upstream_request_id }),
      ...(other === null ? {} : { requested_model: call.model }),
      ...(tried.length === 0 ? {} : { fallback_from: tried }),
      ...(call.stream ? { stream: true } : {}),
      ...(firstTokenAt === null ? {} : { time_to_first_token_ms: Math.round((firstTokenAt - began) * 10) / 10 }),
    },
  };
  const handOn = () => {
    const event = (capture === 'usage' ? usageRecordOf : recordOf)(record, deps.partitions);
    answering.admission.stamp([event]);
    // A limit that was set while the call was in progress counts it too.
    const reservation = deps.countUse(org_id, event);
    if (estimate !== null) {
      deps.estimates.learn(org_id, call, estimate, response);
      answering.admission.release('committing');
    }
    deps.recorder.add(event, reservation);
    deps.observeCall(call.operation, outcome);
  };
  // After a reservation, the caller's next call has to find it settled; otherwise other work goes
  // first.
  if (estimate === null) setImmediate(handOn);
  else handOn();
}
