// A typed sequence of stages, written as an expression: startWith(a).followedBy(b).followedBy(c).
//
// A flow takes a batch of events in log order, runs the stages over it one after the other, and
// returns what the last stage emits, in the same order. It calls the runner once for each stage and
// batch, so it adds no cost per event.
import type { DeadReason, LogPosition, Stage, StepName } from './stage.ts';

/** An event, or a whole message (log_index -1), that can never be stored. */
export interface DeadEvent {
  step: StepName;
  reason: DeadReason;
  detail: string;
  position: LogPosition;
}

/** Runs one stage over one batch under the contract of a stage. */
export interface StageRunner {
  /** Returns the emitted events in order, and appends those that the stage declares dead to `dead`. */
  run<In extends LogPosition, Out>(stage: Stage<In, Out>, batch: readonly In[], dead: DeadEvent[]): Promise<Out[]>;
}

export interface Flow<In, Out> {
  /** Runs every stage over the batch, and appends the events that a stage declares dead to `dead`. */
  run(runner: StageRunner, batch: readonly In[], dead: DeadEvent[]): Promise<Out[]>;
  /**
   * Returns a flow that runs `stage` over what this flow emits. The method is not called `then`,
   * because `await` would call that.
   */
  followedBy<Next extends LogPosition>(stage: Stage<Out, Next>): Flow<In, Next>;
}

/** Returns a flow of one stage. */
export function startWith<In extends LogPosition, Out extends LogPosition>(stage: Stage<In, Out>): Flow<In, Out> {
  return flowOf((runner, batch, dead) => runner.run(stage, batch, dead));
}

function flowOf<In, Out extends LogPosition>(run: Flow<In, Out>['run']): Flow<In, Out> {
  return {
    run,
    followedBy: (stage) =>
      flowOf(async (runner, batch, dead) => runner.run(stage, await run(runner, batch, dead), dead)),
  };
}
