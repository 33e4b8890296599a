// Scores of deterministic judges. In: metered events. Out: the same with the score of each judge that had something to say.
// A judge is a synchronous, total function: it neither waits nor throws.
import type { MeteredEvent, ScoredEvent, Stage } from '../../stage.ts';

export interface Judge {
  readonly judge_id: string;
  readonly name: string;
  /** The score of an event, or null where the event is outside the judge's scope. */
  score(event: MeteredEvent): number | null;
}

/** `judges` as they stand when a batch begins; scores are by judge name. */
export function createScoreStage({ judges }: { judges: readonly Judge[] }): Stage<MeteredEvent, ScoredEvent> {
  return {
    name: 'score',
    run: (batch) => batch.map((event) => ({ kind: 'emit', out: { ...event, scores: scoresOf(judges, event) } })),
  };
}

function scoresOf(judges: readonly Judge[], event: MeteredEvent): Record<string, number> {
  const scores: Record<string, number> = {};
  for (const judge of judges) {
    const score = judge.score(event);
    if (score !== null) scores[judge.name] = score;
  }
  return scores;
}
