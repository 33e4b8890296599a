// The telemetry of LangSmith's clients: POST /langsmith/runs/multipart, POST /langsmith/runs/batch,
// POST /langsmith/runs and PATCH /langsmith/runs/{id}. A run whose beginning and end come in one
// request is stored at once. The parts of others wait in the log until the end has come, and a
// worker folds them. Feedback becomes a score. Every request is accepted or refused as a whole.
import { deeperThan, DEPTH_MAX } from '../../../pipeline/domain/text/nesting.ts';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';
import {
  hasEnded,
  mergedRun,
  type Run,
  RUN_PATCH,
  RUN_POST,
  spanOfRun,
} from '../../../pipeline/domain/langsmith/runs.ts';
import { hex16 } from '../../../pipeline/domain/traces/ids.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import type { LangfuseMessage } from '../../../schemas/records/langfuse.ts';
import { tooOld } from '../../http/backfill.ts';
import { parseJson } from '../../http/body.ts';
import { ApiError } from '../../http/errors.ts';
import { spanEvent, type SpanEvent } from '../compat/events.ts';
import type { CompatReading, CompatRequest, Protocol } from '../compat/handler.ts';
import { foreignTraceId } from '../compat/score.ts';
import { feedbackScore } from './feedback.ts';
import { readMultipart } from './multipart.ts';

export interface LangsmithDeps {
  partitions: number;
  /** Stores a score until its trace arrives. @throws ApiError rate_limited */
  queuePending: (score: UserScore) => Promise<void>;
  /** Stores parts of runs until they are folded. @throws ApiError rate_limited, upstream_unavailable */
  queueParts: (message: LangfuseMessage) => Promise<void>;
}

const SCOPE = 'langsmith';
/** Maximum runs of one request; clients send at most 100. */
const RUNS_MAX = 5000;
const AT_ONCE = 50;
const PART = /^(post|patch|feedback|attachment)\.([^.]+)(?:\.(.+))?$/s;

/** What a request holds. */
interface Sent {
  posts: Map<string, Run>;
  patches: Map<string, Run>;
  feedback: Run[];
}

const isRun = (value: unknown): value is Run => typeof value === 'object' && value !== null && !Array.isArray(value);

export function langsmithProtocols(deps: LangsmithDeps): Protocol[] {
  const protocol = (route: string, method: Protocol['method'], read: (request: CompatRequest) => Sent): Protocol => ({
    route,
    method,
    takesBackfill: true,
    read: (request) => readingOf(read(request), request, deps),
  });
  return [
    protocol('/langsmith/runs/multipart', 'POST', ({ body, contentType }) => multipartOf(body, contentType)),
    protocol('/langsmith/runs/batch', 'POST', ({ body }) => batchOf(jsonOf(body, 'body'))),
    protocol('/langsmith/runs', 'POST', ({ body }) => batchOf({ post: [jsonOf(body, 'body')] })),
    protocol('/langsmith/runs/{id}', 'PATCH', ({ body, id }) => {
      const run = jsonOf(body, 'body');
      return batchOf({ patch: [isRun(run) ? { ...run, id } : run] });
    }),
  ];
}

/** @throws ApiError invalid_request naming the part */
function jsonOf(data: Buffer, name: string): unknown {
  let value: unknown;
  try {
    value = parseJson(data);
  } catch (cause) {
    throw new ApiError('invalid_request', `${name}: must be JSON in UTF-8`, { cause });
  }
  if (deeperThan(value, DEPTH_MAX))
    throw new ApiError('invalid_request', `${name}: is nested deeper than ${DEPTH_MAX} levels`);
  return JSON.parse(wellFormedJson(JSON.stringify(value))) as unknown;
}

function batchOf(body: unknown): Sent {
  if (!isRun(body)) throw new ApiError('invalid_request', 'body: must be an object with post and patch');
  const sent: Sent = { posts: new Map(), patches: new Map(), feedback: [] };
  for (const [side, into] of [
    ['post', sent.posts],
    ['patch', sent.patches],
  ] as const) {
    const list = body[side] ?? [];
    if (!Array.isArray(list)) throw new ApiError('invalid_request', `${side}: must be a list of runs`);
    for (const run of list as unknown[]) {
      const id = isRun(run) ? run['id'] : undefined;
      if (!isRun(run) || typeof id !== 'string')
        throw new ApiError('invalid_request', `${side}: every run must have an id`);
      into.set(id, mergedRun(into.get(id) ?? {}, run));
    }
  }
  return sent;
}

/** Joins the parts of each run: `post.<id>` and `post.<id>.<field>`. */
function multipartOf(body: Buffer, contentType: string): Sent {
  const sent: Sent = { posts: new Map(), patches: new Map(), feedback: [] };
  const attachments = new Map<string, Run>();
  for (const { name, type, data } of readMultipart(body, contentType)) {
    const found = PART.exec(name);
    const [, kind = '', id = '', field] = found ?? [];
    if (found === null) throw new ApiError('invalid_request', `${name.slice(0, 100)}: is not a part of a run`);
    if (kind === 'attachment') {
      const known = attachments.get(id) ?? {};
      attachments.set(id, { ...known, [field ?? '']: { content_type: type.split(';', 1)[0], bytes: data.length } });
      continue;
    }
    const value = jsonOf(data, name.slice(0, 100));
    if (kind === 'feedback') {
      if (!isRun(value)) throw new ApiError('invalid_request', `${name.slice(0, 100)}: must be an object`);
      sent.feedback.push({ id, ...value });
      continue;
    }
    const into = kind === 'post' ? sent.posts : sent.patches;
    const run = into.get(id) ?? { id };
    if (field === undefined && !isRun(value))
      throw new ApiError('invalid_request', `${name.slice(0, 100)}: must be an object`);
    into.set(id, field === undefined ? { ...run, ...(value as Run), id } : { ...run, [field]: value });
  }
  for (const [id, files] of attachments) {
    const into = sent.posts.has(id) ? sent.posts : sent.patches;
    const run = into.get(id);
    // The bytes of attachments are not stored; the run keeps their names, types and sizes.
    if (run !== undefined) into.set(id, { ...run, attachments: files });
  }
  return sent;
}

function readingOf({ posts, patches, feedback }: Sent, request: CompatRequest, deps: LangsmithDeps): CompatReading {
  const { received_at, credential } = request;
  if (posts.size + patches.size + feedback.length > RUNS_MAX)
    throw new ApiError('payload_too_large', `A request may not hold more than ${RUNS_MAX} runs. Send it in parts.`);
  const { org_id } = credential;
  const events: SpanEvent[] = [];
  const later: SpanEvent[] = [];
  const messages = new Map<string, LangfuseMessage>();
  const wait = (type: string, run: Run, trace_id: string) => {
    const held = messages.get(trace_id) ?? { org_id, trace_id, items: [] };
    const timestamp = new Date(received_at).toISOString();
    held.items.push({ id: hex16(`${type}\n${JSON.stringify(run)}`), type, timestamp, body: run, received_at });
    messages.set(trace_id, held);
  };
  for (const [id, post] of posts) {
    const patch = patches.get(id);
    const run = patch === undefined ? post : mergedRun(post, patch);
    const event = eventOf(run, request, deps.partitions);
    if (hasEnded(run) || request.backfill) events.push(event);
    else {
      later.push(event);
      wait(RUN_POST, run, event.event.trace_id);
    }
  }
  for (const [id, run] of patches) {
    if (posts.has(id)) continue;
    if (request.backfill)
      throw new ApiError('invalid_request', 'patch: a run of the past must be whole. Send it in post.');
    const event = eventOf(run, request, deps.partitions);
    later.push(event);
    wait(RUN_PATCH, run, event.event.trace_id);
  }
  const scores = feedback.map((one) => feedbackScore(one, request));
  return {
    events,
    later,
    items: posts.size + patches.size + feedback.length,
    finish: async () => {
      await inTurns([...messages.values()], deps.queueParts);
      await inTurns(scores, deps.queuePending);
      return { status: 202, json: { message: 'Accepted' } };
    },
  };
}

async function inTurns<T>(all: readonly T[], store: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) await Promise.all(all.slice(from, from + AT_ONCE).map(store));
}

/** @throws ApiError invalid_request naming the field of the run */
function eventOf(run: Run, { credential, received_at, backfill }: CompatRequest, partitions: number): SpanEvent {
  const span = spanOfRun(run, received_at);
  const age = backfill ? tooOld(Number(BigInt(span.start_time_unix_nano) / 1_000_000n), received_at) : null;
  if (age !== null) throw new ApiError('invalid_request', `run ${span.span_id.slice(0, 128)}: its start ${age}`);
  if (!foreignTraceId.safeParse(span.trace_id).success)
    throw new ApiError('invalid_request', 'trace_id: must be 1 to 128 of letters, digits, _ . : -');
  const made = spanEvent(span, { org_id: credential.org_id, received_at, partitions, scope: SCOPE });
  if (!made.ok) throw new ApiError('invalid_request', `run ${span.span_id.slice(0, 128)}: ${made.message}`);
  return made.event;
}
