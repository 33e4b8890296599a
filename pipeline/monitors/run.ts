// Run of the job `monitors`: evaluates every enabled monitor and sends what changed. Takes the
// definitions and states in KV and the rows of the store; writes states, events, deliveries and
// mails. Guarantees: a change is stored with its notices before they are sent, and removed from the
// state after, so a crash at any point loses none and repeats them under the same ids. A monitor that
// cannot be evaluated says why in its state and alerts for nothing. The run ends before the next one
// is due; monitors that were not reached are the first of the next run. Every evaluation writes the
// state, because the API shows when that was.
import { RevisionConflict, type WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { monitorKey, type MonitorRecord, type MonitorState } from '../../schemas/records/monitor.ts';
import { type ClickHouse, isExhausted, isTooLarge } from '../../sql/client/client.ts';
import { afterFailure, afterMeasured, freshState, withoutGroups } from '../domain/monitors/evaluate.ts';
import type { JobContext, JobResult } from '../jobs/job.ts';
import { type Batch, batchesOf, type Finding, halvesOf, measure } from './measure.ts';
import { StatementSizes } from './sizes.ts';
import type { SendNotice } from './send.ts';
import { inTurns } from './turns.ts';

/** Statements at a time, in all and of one organization. */
const AT_ONCE = 4;
const ORG_AT_ONCE = 2;
/** States that are written at a time for one statement. */
const WRITES_AT_ONCE = 16;
/** Time in which statements begin, and in which they end: before the next run. */
const BEGIN_MS_MAX = 50_000;
const END_MS_MAX = 55_000;
/** Time for the statement of one variant, and for that of several. */
const MEASURE_MS_MAX = 5000;
const SHARED_MS_MAX = 15_000;

export interface MonitorBuckets {
  monitors: Pick<WatchedBucket<MonitorRecord>, 'get' | 'values' | 'close'>;
  states: Pick<WatchedBucket<MonitorState>, 'held' | 'entries' | 'create' | 'update' | 'delete' | 'close'>;
}

export interface MonitorsDeps {
  clickhouse: ClickHouse;
  /** Opens the records for the length of a run. */
  open: () => Promise<MonitorBuckets>;
  send: SendNotice;
}

interface Counts extends JobResult {
  monitors: number;
  alerting: number;
  failed: number;
  notices: number;
  late: number;
}

interface Run extends JobContext {
  deps: MonitorsDeps;
  buckets: MonitorBuckets;
  counts: Counts;
  sizes: StatementSizes;
  /** Aborts when no statement may begin any more. */
  begin: AbortSignal;
  /** End of the run, as performance.now() counts. */
  ends: number;
}

export function createMonitors(deps: MonitorsDeps): (context: JobContext) => Promise<JobResult> {
  const sizes = new StatementSizes();
  return async (context) => {
    const buckets = await deps.open();
    const counts: Counts = { monitors: 0, alerting: 0, failed: 0, notices: 0, late: 0 };
    const begin = AbortSignal.any([context.signal, AbortSignal.timeout(BEGIN_MS_MAX)]);
    const run: Run = { ...context, deps, buckets, counts, sizes, begin, ends: performance.now() + END_MS_MAX };
    try {
      await settleIdle(run);
      const due = [...buckets.monitors.values()].filter(({ enabled }) => enabled);
      const batches = batchesOf(
        due.sort((a, b) => lastOf(run, a) - lastOf(run, b)),
        (rows) => sizes.of(rows, run.now),
      );
      const bounds = { atOnce: AT_ONCE, orgAtOnce: ORG_AT_ONCE, signal: begin };
      counts.late += await inTurns(batches, bounds, (batch) => evaluate(run, batch));
      context.signal.throwIfAborted();
      if (counts.late > 0) context.log.warn({ left: counts.late }, 'statements of monitors did not begin in this run');
      return counts;
    } finally {
      buckets.monitors.close();
      buckets.states.close();
    }
  };
}

/** Returns when a monitor was last evaluated, in milliseconds since the epoch; 0 before the first time. */
function lastOf({ buckets }: Run, { org_id, monitor_id }: MonitorRecord): number {
  const at = buckets.states.held(monitorKey(org_id, monitor_id))?.value.evaluated_at;
  return at === undefined || at === null ? 0 : Date.parse(at);
}

/** Resolves what disabled and deleted monitors had alerting, and deletes the states of deleted ones. */
async function settleIdle(run: Run): Promise<void> {
  const { buckets, now } = run;
  for (const [key, { value }] of [...buckets.states.entries()]) {
    run.signal.throwIfAborted();
    const monitor = buckets.monitors.get(key);
    if (monitor?.enabled === true) continue;
    if (monitor !== undefined && value.groups.length === 0 && value.outbox.length === 0) continue;
    await guarded(run, value, async () => {
      await write(run, key, withoutGroups(value, monitor === undefined ? 'deleted' : 'disabled', now));
      await sendOutbox(run, key);
      const held = buckets.states.held(key);
      if (monitor === undefined && held !== undefined) await buckets.states.delete(key, held.revision);
    });
  }
}

/** Evaluates the monitors of a batch. Never rejects. */
async function evaluate(run: Run, batch: Batch): Promise<void> {
  const findings = await findingsOf(run, batch);
  if (run.signal.aborted) return;
  if (findings === 'too large') {
    run.sizes.shrink(batch.rows, batch.variants.length, run.now);
    for (const half of halvesOf(batch)) {
      if (run.begin.aborted) run.counts.late += 1;
      else await evaluate(run, half);
    }
    return;
  }
  const settled = batch.variants.flatMap(({ monitors }, index) => {
    const finding = findings[index];
    return finding === undefined ? [] : monitors.map((monitor) => ({ org_id: batch.org_id, monitor, finding }));
  });
  const bounds = { atOnce: WRITES_AT_ONCE, orgAtOnce: WRITES_AT_ONCE, signal: run.signal };
  await inTurns(settled, bounds, ({ monitor, finding }) => guarded(run, monitor, () => settle(run, monitor, finding)));
}

/** Returns a finding for each variant, or that the store had too little time or memory for several at once. */
async function findingsOf(run: Run, batch: Batch): Promise<Finding[] | 'too large'> {
  const { now, signal } = run;
  const isShared = batch.variants.length > 1;
  const left = Math.max(MEASURE_MS_MAX, run.ends - performance.now());
  const timeoutMs = isShared ? Math.min(SHARED_MS_MAX, left) : MEASURE_MS_MAX;
  const began = performance.now();
  try {
    return await measure(run.deps.clickhouse, batch, { now, timeoutMs, signal });
  } catch (error) {
    if (isShared && (isExhausted(error) || isTooLarge(error))) return 'too large';
    run.log.warn({ err: error, org_id: batch.org_id }, 'monitors could not be evaluated');
    const slow = performance.now() - began >= timeoutMs;
    const refused = slow
      ? `The query took longer than ${timeoutMs / 1000} seconds. Choose a shorter window or fewer groups.`
      : 'The store could not answer the query. It is asked again within a minute.';
    return batch.variants.map(() => ({ refused }));
  }
}

/** Stores the next state of one monitor, then sends its notices. */
async function settle(run: Run, { org_id, monitor_id }: MonitorRecord, finding: Finding): Promise<void> {
  const { buckets, counts, now } = run;
  const key = monitorKey(org_id, monitor_id);
  // Notices that an earlier run left are sent first, so that an outbox holds at most those of one run.
  await sendOutbox(run, key);
  // The newest definition counts: one that was deleted or disabled meanwhile must not alert.
  const monitor = buckets.monitors.get(key);
  if (monitor?.enabled !== true) return;
  const before = buckets.states.held(key)?.value ?? freshState(monitor);
  const after =
    'refused' in finding
      ? afterFailure(before, monitor, finding.refused, now)
      : afterMeasured(before, monitor, finding, now);
  await write(run, key, after);
  await sendOutbox(run, key);
  counts.monitors += 1;
  if (after.error !== null) counts.failed += 1;
  if (after.groups.some(({ state }) => state === 'alerting')) counts.alerting += 1;
}

async function sendOutbox(run: Run, key: string): Promise<void> {
  const { buckets, deps, counts } = run;
  const state = buckets.states.held(key)?.value;
  if (state === undefined || state.outbox.length === 0) return;
  for (const notice of state.outbox) {
    run.signal.throwIfAborted();
    await deps.send(state.monitor, notice);
    counts.notices += 1;
  }
  await write(run, key, { ...state, outbox: [] });
}

/** @throws RevisionConflict when another worker has taken the job over */
async function write({ buckets: { states } }: Run, key: string, state: MonitorState): Promise<void> {
  const held = states.held(key);
  await (held === undefined ? states.create(key, state) : states.update(key, state, held.revision));
}

/** Carries out the work of one monitor; the next run repeats what failed. */
async function guarded(run: Run, { org_id, monitor_id }: MonitorRecord | MonitorState, work: () => Promise<void>) {
  try {
    await work();
  } catch (error) {
    if (error instanceof RevisionConflict || run.signal.aborted) return;
    run.log.warn({ err: error, org_id, monitor_id }, 'the state of a monitor could not be settled; the next run will');
  }
}
