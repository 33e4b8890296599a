// Gauges of a worker, set once a second: how far it is behind the log, and what it holds in memory.
import * as metrics from '../../ops/platform/metrics.ts';
import { Lag } from '../worker/lag.ts';
import type { DataPlane } from './data_plane.ts';

const GAUGES_MS = 1000;

/** Sets the gauges until the timer is cleared. */
export function startGauges(
  { states: owned, reader, budgets }: Pick<DataPlane, 'states' | 'reader' | 'budgets'>,
  jobs: { overdue: () => Map<string, number> },
): NodeJS.Timeout {
  const lag = new Lag();
  return setInterval(() => {
    const states = [...owned.values()];
    budgets.reportProgress(
      states.map((state) => ({ ...state, behind: reader.lag > 0 || state.read_through < state.taken_through })),
    );
    metrics.pipelinePartitionsOwned.set(states.length);
    metrics.pipelineOpenTraces.set(states.reduce((sum, { book }) => sum + book.openCount, 0));
    metrics.samplingHeldTraces.set(states.reduce((sum, { tail }) => sum + tail.size, 0));
    metrics.samplingHeldBytes.set(states.reduce((sum, { tail }) => sum + tail.bytes, 0));
    metrics.pipelineDedupeIds.set(states.reduce((sum, { window }) => sum + window.size, 0));
    metrics.pipelineDedupeBytes.set(states.reduce((sum, { window }) => sum + window.bytes, 0));
    metrics.pipelineLagMessages.set(reader.lag);
    for (const [job, seconds] of jobs.overdue()) metrics.jobOverdueSeconds.set({ job }, seconds);
    const behind = reader.lag > 0 || states.some((state) => state.landed_through < state.prepared_through);
    const landed_at = Math.max(0, ...states.map((state) => state.landed_at));
    metrics.pipelineLagSeconds.set(lag.seconds({ now: Date.now(), behind, landed_at }));
  }, GAUGES_MS);
}
