// Gauges of a worker, set once a second: how far it is behind the log, and what it holds in memory.
import * as metrics from '../../ops/platform/metrics.ts';
import { StreamLags } from '../worker/lag.ts';
import type { DataPlane } from './data_plane.ts';

const GAUGES_MS = 1000;

/** Sets the gauges until the timer is cleared. */
export function startGauges(
  { states: owned, readers, budgets }: Pick<DataPlane, 'states' | 'readers' | 'budgets'>,
  jobs: { overdue: () => Map<string, number> },
): NodeJS.Timeout {
  const lags = readers.map(() => new StreamLags());
  return setInterval(() => {
    const states = owned();
    const streams = readers.flatMap(({ streams: read }) => read);
    const behind = new Set(streams.flatMap(({ partitions, isBehind }) => (isBehind ? partitions : [])));
    budgets.reportProgress(
      states.map((state) => ({
        ...state,
        behind: behind.has(state.partition) || state.read_through < state.taken_through,
      })),
    );
    metrics.pipelinePartitionsOwned.set(states.length);
    metrics.pipelineOpenTraces.set(states.reduce((sum, { book }) => sum + book.openCount, 0));
    metrics.samplingHeldTraces.set(states.reduce((sum, { tail }) => sum + tail.size, 0));
    metrics.samplingHeldBytes.set(states.reduce((sum, { tail }) => sum + tail.bytes, 0));
    metrics.pipelineDedupeIds.set(states.reduce((sum, { window }) => sum + window.size, 0));
    metrics.pipelineDedupeBytes.set(states.reduce((sum, { window }) => sum + window.bytes, 0));
    metrics.pipelineLagMessages.set(readers.reduce((sum, { lag }) => sum + lag, 0));
    for (const [job, seconds] of jobs.overdue()) metrics.jobOverdueSeconds.set({ job }, seconds);
    const byPartition = new Map(states.map((state) => [state.partition, state]));
    const seconds = readers.map(({ streams: read }, index) => lags[index]?.seconds(read, byPartition, Date.now()) ?? 0);
    metrics.pipelineLagSeconds.set(Math.max(0, ...seconds));
  }, GAUGES_MS);
}
