// Replays a trace with the current prompt versions: takes a trace id, returns what each model call
// would be asked now, and with commit what the models answer, stored as a new trace the way ingest
// does. A dry run calls no model and stores nothing. A commit stores all of its calls together or,
// if one of them cannot be made, none. Calls are bounded in number, concurrency and time.
import { randomBytes } from 'node:crypto';
import type { ChatAnswer, Upstream } from '../../../ops/platform/llm/upstream.ts';
import { type AnsweredCall, replayEvents } from '../../../pipeline/domain/traces/replay_events.ts';
import { planReplay, type ReplayCall, type ReplaySpan } from '../../../pipeline/domain/traces/replay.ts';
import { unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import type { OrgSlots } from '../../http/org_slots.ts';
import { readAttributes } from '../../../pipeline/domain/text/attributes.ts';
import type { Replayed } from './compare_schema.ts';
import { locateTrace, traceNotFound } from './locate.ts';
import { makeCalls } from './replay_calls.ts';
import { readSpans, type SpanRow, type TraceRange } from './store.ts';
import { placeKey, type TextsByPlace, textsOf } from './tree.ts';

/** Maximum spans of a trace that can be replayed, as many as a tree has. */
const SPANS_MAX = 1000;
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

/** Maximum concurrent replays with commit of one organization in one API process. */
export const REPLAYS_ORG_MAX = 4;

/** Permission that commit needs besides reading traces, since it spends money on model calls. */
const COMMIT_PERMISSION = 'gateway:invoke';

export interface ReplayDeps {
  clickhouse: ClickHouse;
  /** Returns the newest version of a prompt. */
  promptOf: (org_id: string, name: string) => PromptRecord | null;
  /** null if none is configured. */
  upstream: Upstream | null;
  /**
   * Slots of the concurrent replays with commit of each organization: each replay holds connections
   * and answers for up to a minute.
   */
  replaySlots: Pick<OrgSlots, 'take'>;
  /** Writes to the ingest log; see api/intake/ingest/store.ts. */
  recorder: {
    check: (org_id: string, bodies: ReturnType<typeof replayEvents>) => Promise<void>;
    store: (org_id: string, bodies: ReturnType<typeof replayEvents>) => Promise<void>;
  };
}

/**
 * Serves POST /v1/traces/{trace_id}/replay. @throws ApiError replay_failed, upstream_unavailable,
 * and the errors of ingest
 */
export async function replayTrace(
  deps: ReplayDeps,
  { credential, trace_id, commit }: { credential: OrgCredential; trace_id: string; commit: boolean },
  signal: AbortSignal,
): Promise<Replayed> {
  const { org_id } = credential;
  if (commit && !may(credential, COMMIT_PERMISSION))
    throw new ApiError('forbidden', `A replay with commit needs the permission ${COMMIT_PERMISSION}.`);
  const spans = await readReplaySpans(
    deps.clickhouse,
    await locateTrace(deps.clickhouse, org_id, trace_id, signal),
    signal,
  );
  const plan = planReplay(spans, (name) => deps.promptOf(org_id, name));
  if (!plan.ok) throw new ApiError('replay_failed', plan.detail);
  if (!commit) return answerOf(trace_id, plan.calls, null);
  const release = deps.replaySlots.take(org_id);
  if (release === null) throw tooManyReplays();
  try {
    const calls = await commitReplay(deps, { org_id, trace_id, spans, calls: plan.calls }, signal);
    return answerOf(trace_id, calls.answered, calls.new_trace_id);
  } finally {
    release();
  }
}

function tooManyReplays(): ApiError {
  const detail = `This organization has ${REPLAYS_ORG_MAX} replays with commit in progress. Retry after the number of seconds in Retry-After.`;
  return new ApiError('rate_limited', detail, { headers: { 'Retry-After': '1' } });
}

async function readReplaySpans(clickhouse: ClickHouse, range: TraceRange, signal: AbortSignal): Promise<ReplaySpan[]> {
  const rows = await readSpans(clickhouse, { ...range, rows: SPANS_MAX, counted: true }, { signal });
  const total = rows[0]?.total ?? 0;
  if (total === 0) throw traceNotFound();
  if (total > SPANS_MAX)
    throw new ApiError('replay_failed', `The trace has ${total} spans; a replay takes at most ${SPANS_MAX}.`);
  const calls = rows.filter(({ kind }) => kind === 'llm');
  const texts = await readTexts(clickhouse, range, calls, signal);
  return rows.map((row) => {
    const { span_id, parent_span_id, kind, name, model, started_ms, tags, sampled } = row;
    const { prompt = '', response = '' } = texts.get(placeKey(row)) ?? {};
    const attributes = unfoldTexts(readAttributes(row.attributes, kind), prompt, response);
    return { span_id, parent_span_id, kind, name, model, started_ms, attributes, tags, prompt, response, sampled };
  });
}

async function readTexts(
  clickhouse: ClickHouse,
  range: TraceRange,
  calls: readonly SpanRow[],
  signal: AbortSignal,
): Promise<TextsByPlace> {
  try {
    return await textsOf(clickhouse, range, calls, { signal, bytesMax: TEXT_BYTES_MAX });
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    throw new ApiError('replay_failed', `The prompts and responses of the trace exceed ${TEXT_BYTES_MAX} bytes.`);
  }
}

interface Committed {
  org_id: string;
  trace_id: string;
  spans: readonly ReplaySpan[];
  calls: readonly ReplayCall[];
}

async function commitReplay(deps: ReplayDeps, { org_id, trace_id, spans, calls }: Committed, signal: AbortSignal) {
  const { upstream, recorder } = deps;
  if (upstream === null)
    throw new ApiError(
      'upstream_unavailable',
      'No upstream for models is configured (SERVICE_LLM_BASE_URL), so commit cannot call one.',
    );
  const ids = { trace_id: `trc_${newHex()}`, replay_of: trace_id };
  const eventsOf = (answered: readonly AnsweredCall[]) => replayEvents(ids, spans, answered, () => `spn_${newHex()}`);
  const now = Date.now();
  const unanswered = calls.map((call) => ({
    ...call,
    answer: { raw: { choices: [] }, started_at: now, ended_at: now },
  }));
  await recorder.check(org_id, eventsOf(unanswered));
  const answers = await makeCalls(upstream, calls, signal);
  const answered = calls.flatMap((call, i) => {
    const answer = answers[i];
    return answer === undefined ? [] : [{ ...call, answer }];
  });
  await recorder.store(org_id, eventsOf(answered)).catch((error: unknown) => {
    if (!(error instanceof ApiError) || (error.code !== 'decode_failed' && error.code !== 'payload_too_large'))
      throw error;
    throw new ApiError('replay_failed', `The answer of the upstream cannot be stored: ${error.detail}`, {
      cause: error,
    });
  });
  return { new_trace_id: ids.trace_id, answered };
}

function answerOf(
  trace_id: string,
  calls: readonly (ReplayCall & { answer?: ChatAnswer })[],
  new_trace_id: string | null,
): Replayed {
  const spans = calls.map(({ span, prompt_name, prompt_version, model, new_prompt, answer }) => ({
    span_id: span.span_id,
    prompt_name,
    prompt_version,
    model,
    old_prompt: span.prompt,
    new_prompt,
    old_response: span.response,
    new_response: answer?.text ?? null,
  }));
  return { trace_id, commit: new_trace_id !== null, spans, new_trace_id };
}

const newHex = (): string => randomBytes(8).toString('hex');
