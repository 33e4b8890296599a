// Runs a stage over a batch under its contract: one outcome for each input, in order.
//
// It counts what the stage drops and returns what the stage declares dead. If a stage throws, its
// batch runs again one event at a time, so that only the event that causes the error is
// dead-lettered. Metrics go to an observer.
import type { Logger } from '../../ops/platform/logger.ts';
import type { StageRunner } from '../flow.ts';
import type { Outcome, Retain, Stage, StageName, StepName } from '../stage.ts';
import { backoffMs } from '../queues/backoff.ts';

export interface StageObserver {
  batch(step: StepName, seconds: number, received: number, emitted: number): void;
  dropped(stage: StageName, reason: string, count: number): void;
  dead(stage: StageName, reason: string, count: number): void;
  /** Counts events that were decided, by how much of each is stored and why. */
  sampled(retain: Retain, reason: string, count: number): void;
}

export function createStageRunner(observer: StageObserver, logger: Logger): StageRunner {
  return {
    async run(stage, batch, dead) {
      if (batch.length === 0) return [];
      await prefetch(stage, batch, logger);
      const began = performance.now();
      const outcomes = runGuarded(stage, batch, logger);
      const out = [];
      let drops = 0;
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind === 'emit') {
          out.push(outcome.out);
        } else if (outcome.kind === 'drop') {
          drops += 1;
          observer.dropped(stage.name, outcome.reason, 1);
        } else {
          const input = batch[index];
          if (input !== undefined)
            dead.push({ step: stage.name, reason: outcome.reason, detail: outcome.detail, position: input });
          observer.dead(stage.name, outcome.reason, 1);
        }
      }
      if (drops > 0) logger.debug({ stage: stage.name, drops }, 'events dropped on purpose');
      observer.batch(stage.name, (performance.now() - began) / 1000, batch.length, out.length);
      return out;
    },
  };
}

async function prefetch<In, Out>(stage: Stage<In, Out>, batch: readonly In[], logger: Logger): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await stage.prefetch?.(batch);
      return;
    } catch (error) {
      logger.warn({ err: error, stage: stage.name, attempt }, 'a stage waits for the store; trying again');
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
    }
  }
}

function runGuarded<In, Out>(stage: Stage<In, Out>, batch: readonly In[], logger: Logger): readonly Outcome<Out>[] {
  try {
    return checked(stage, batch);
  } catch (error) {
    logger.error(
      { err: error, stage: stage.name, events: batch.length },
      'a stage failed; running its batch one event at a time',
    );
    return batch.map((input): Outcome<Out> => {
      try {
        const [outcome] = checked(stage, [input]);
        if (outcome !== undefined) return outcome;
        return { kind: 'dead', reason: 'internal_error', detail: 'no outcome' };
      } catch (cause) {
        return {
          kind: 'dead',
          reason: 'internal_error',
          detail: cause instanceof Error ? cause.message : String(cause),
        };
      }
    });
  }
}

function checked<In, Out>(stage: Stage<In, Out>, batch: readonly In[]): readonly Outcome<Out>[] {
  const outcomes = stage.run(batch);
  if (outcomes.length !== batch.length)
    throw new Error(`stage ${stage.name} returned ${outcomes.length} outcomes for ${batch.length} inputs`);
  return outcomes;
}
