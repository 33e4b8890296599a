// Turns a replay into events of a new trace. In: the calls of a plan and their answers. Out: bodies
// as ingest accepts them: the calls under one root, with their original parents where those were
// replayed too. Pure.
import { type ReplayCall, type ReplaySpan } from './replay.ts';

/** A call that was made. */
export interface AnsweredCall extends ReplayCall {
  answer: {
    /** As the upstream sent it. */
    raw: Readonly<Record<string, unknown>>;
    /** Milliseconds since the epoch. */
    started_at: number;
    ended_at: number;
  };
}

export interface ReplayEvent {
  format: 'chatcompletion' | 'custom';
  body: Record<string, unknown>;
}

/** Attributes that a call's use is counted under. */
const OWNERS = ['agent_id', 'department', 'realm'] as const;

/**
 * Returns the events of the new trace. When the old root was not a model call, or several calls
 * have no replayed parent, a step with the old root's name becomes their parent.
 * @param spans all spans of the old trace
 * @param newSpanId returns a new span id on each call
 */
export function replayEvents(
  { trace_id, replay_of }: { trace_id: string; replay_of: string },
  spans: readonly ReplaySpan[],
  calls: readonly AnsweredCall[],
  newSpanId: () => string,
): ReplayEvent[] {
  const ids = new Map(calls.map(({ span }) => [span.span_id, newSpanId()]));
  const parents = new Map(calls.map(({ span }) => [span.span_id, replayedParent(span, spans, ids)]));
  const tops = calls.filter(({ span }) => parents.get(span.span_id) == null);
  const root = rootOf(spans);
  const alone = tops.length === 1 && tops[0]?.span.span_id === root?.span_id;
  const holder = alone ? null : newSpanId();
  const events = calls.map((call): ReplayEvent => {
    const { span, prompt_name, prompt_version } = call;
    const prompt =
      prompt_name === null
        ? {}
        : { prompt_name, prompt_version, prompt_variables: span.attributes['prompt_variables'] ?? {} };
    const parent_span_id = parents.get(span.span_id) ?? holder;
    return {
      format: 'chatcompletion',
      body: {
        trace_id,
        span_id: ids.get(span.span_id),
        ...(parent_span_id === null ? {} : { parent_span_id }),
        request: { model: call.model, messages: call.messages, ...call.parameters },
        response: call.answer.raw,
        outcome: 'success',
        ...timesOf(call.answer),
        tags: span.tags,
        attributes: { ...marks(replay_of, span), ...prompt },
      },
    };
  });
  if (holder === null) return events;
  return [holderEvent({ trace_id, replay_of, span_id: holder }, root, calls), ...events];
}

function holderEvent(
  { trace_id, replay_of, span_id }: { trace_id: string; replay_of: string; span_id: string },
  root: ReplaySpan | null,
  calls: readonly AnsweredCall[],
): ReplayEvent {
  const started_at = Math.min(...calls.map(({ answer }) => answer.started_at));
  const ended_at = Math.max(...calls.map(({ answer }) => answer.ended_at));
  return {
    format: 'custom',
    body: {
      trace_id,
      span_id,
      name: root?.name === undefined || root.name === '' ? 'replay' : root.name,
      outcome: 'success',
      ...timesOf({ started_at, ended_at }),
      tags: root?.tags ?? [],
      attributes: root === null ? { replay_of, force_trace: true } : marks(replay_of, root),
    },
  };
}

/** Somebody asked for the replay, so sampling keeps it. */
function marks(replay_of: string, span: ReplaySpan): Record<string, unknown> {
  const owners = OWNERS.map((name) => [name, span.attributes[name]] as const).filter(
    ([, value]) => typeof value === 'string',
  );
  return { ...Object.fromEntries(owners), replay_of, replay_of_span: span.span_id, force_trace: true };
}

function timesOf({ started_at, ended_at }: { started_at: number; ended_at: number }) {
  const end = Math.max(started_at, ended_at);
  return {
    duration_ms: end - started_at,
    started_at: new Date(started_at).toISOString(),
    ended_at: new Date(end).toISOString(),
  };
}

/** Returns the earliest span without a parent. */
function rootOf(spans: readonly ReplaySpan[]): ReplaySpan | null {
  return spans
    .filter(({ parent_span_id }) => parent_span_id === '')
    .reduce<ReplaySpan | null>(
      (first, span) => (first === null || span.started_ms < first.started_ms ? span : first),
      null,
    );
}

/**
 * Returns the new id of the nearest replayed ancestor; null when there is none. A cycle ends where
 * it began.
 */
function replayedParent(
  span: ReplaySpan,
  spans: readonly ReplaySpan[],
  ids: ReadonlyMap<string, string>,
): string | null {
  const byId = new Map(spans.map((one) => [one.span_id, one]));
  const seen = new Set([span.span_id]);
  for (let at = span.parent_span_id; at !== '' && !seen.has(at); at = byId.get(at)?.parent_span_id ?? '') {
    const id = ids.get(at);
    if (id !== undefined) return id;
    seen.add(at);
  }
  return null;
}
