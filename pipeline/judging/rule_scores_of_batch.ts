// Adds the scores of rules to a batch: of the completion events in the batch, the traces that have
// judges are judged. Guarantees: rows of scores join the rows of the batch, so that they land
// before any event is published. Breaches and tasks are published together with the batch's events.
import type { JudgingTask } from '../../schemas/codec.ts';
import { scoresLine } from '../landing/row_encoders.ts';
import type { CompleteTrace } from './rule_inputs.ts';
import type { LandingUnit } from '../landing/lander.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { ScoredTrace } from './rule_scores.ts';
import type { StageObserver } from '../worker/stage_runner.ts';
import type { TraceEvent } from '../traces/trace_events.ts';

export type JudgingOf = (traces: readonly CompleteTrace[]) => Promise<ScoredTrace[]>;

type Placed<T> = T & { partition: number };

/** Results of a batch's complete traces beside their rows. */
export interface Judging {
  events: Placed<TraceEvent>[];
  tasks: Placed<{ task: JudgingTask }>[];
}

export interface JudgeCompletedDeps {
  judge: JudgingOf;
  observer: StageObserver;
  /** Offset that turns positions in the log into log positions of the store. */
  logBase: number;
  now(): number;
}

/**
 * Judges the complete traces of a batch.
 * @param events events of the open traces, in order; those that complete a trace get its scores
 * @param unitOf returns what receives the rows of an organization's scores
 * @param landed resolves when the earlier batches have landed: only then can what they contain and
 * memory does not hold be read back
 */
export async function judgeCompleted(
  deps: JudgeCompletedDeps,
  states: ReadonlyMap<number, PartitionState>,
  events: readonly Placed<TraceEvent>[],
  unitOf: (org_id: string) => Pick<LandingUnit, 'judge_scores'>,
  landed: () => Promise<void>,
): Promise<Judging> {
  const complete = events.filter(({ complete: trace }) => trace !== undefined);
  if (complete.length === 0) return { events: [...events], tasks: [] };
  const isUnderWay = ({ complete: trace, partition }: Placed<TraceEvent>): boolean =>
    trace !== undefined &&
    trace.stored_through > 0 &&
    trace.stored_through > deps.logBase + (states.get(partition)?.landed_through ?? 0);
  if (complete.some(isUnderWay)) await landed();
  const began = performance.now();
  const scores = await deps.judge(complete.flatMap(({ complete: trace }) => trace ?? []));
  const scored = new Map(scores.map((one) => [one.trace, one]));
  const scored_at = deps.now();
  const breaches: Placed<TraceEvent>[] = [];
  const tasks: Judging['tasks'] = [];
  const scoredEvents = events.map(({ complete: trace, ...event }) => {
    const result = trace === undefined ? undefined : scored.get(trace);
    if (trace === undefined || result === undefined) return event;
    const { partition } = event;
    const { state, version } = trace;
    const { org_id, trace_id } = state;
    if (result.fresh.length > 0) {
      const line = scoresLine(state, result.fresh, { partition, version, scored_at });
      const epoch = states.get(partition)?.epoch ?? 0;
      unitOf(org_id).judge_scores.push({
        wire: line,
        partition,
        epoch,
        log_seq: version,
        key: `${org_id} ${trace_id}`,
        event: null,
      });
    }
    for (const breach of result.breaches)
      breaches.push({
        event: breach.event,
        org_id,
        trace_id,
        subject: breach.judge_id,
        payload: { ...breach },
        partition,
      });
    for (const task of result.tasks) tasks.push({ task, partition });
    return { ...event, payload: { ...event.payload, judge_scores: result.scores } };
  });
  deps.observer.batch('score', (performance.now() - began) / 1000, complete.length, scored.size);
  return { events: [...scoredEvents, ...breaches], tasks };
}
