// Reads back from ClickHouse what a new owner of partitions needs: the rows above their checkpoints,
// their open traces, and the ids of their dedupe windows. One statement reads for all partitions.
// Log positions are the store's: position in the log plus log base.
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readLandedSpans, readLandedTexts, repairAgentActivity, repairTraceLookup } from '../../sql/stores/landings.ts';
import {
  eachEventId,
  eachTraceHash,
  readDecidedTraces,
  readNewestReceived,
  readNewestTraces,
  readOpenTraces,
  readUsageThrough,
} from '../../sql/stores/partition_rows.ts';
import { type PartitionFrom, positionParams } from '../../sql/stores/positions.ts';
import { traceKey } from '../domain/traces/ids.ts';
import { storedTrace } from '../traces/stored_trace.ts';
import type {
  FullFrom,
  HistoryOptions,
  HistoryStore,
  PartitionHistory,
  PartitionMemory,
} from '../worker/partition_state.ts';
import { rowKey } from './landing_row.ts';

/**
 * Slack before the window, because the next events to be read are older than the newest landed ones
 * by a landing or two.
 */
const RECALL_SLACK_MS = 600_000;

type Position = Awaited<ReturnType<typeof readLandedSpans>>[number];

export class ClickHouseHistoryStore implements HistoryStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  async recall(
    records: readonly PartitionRecord[],
    { logBase, windowMs }: HistoryOptions,
    memories: ReadonlyMap<number, PartitionMemory>,
  ): Promise<void> {
    const partitions = records.map(({ partition }) => partition);
    await Promise.all([
      eachTraceHash(this.#client, partitions, (partition, hash) => {
        memories.get(partition)?.trace(hash);
      }),
      readNewestReceived(this.#client, partitions).then((received) =>
        eachEventId(
          this.#client,
          records.map(({ partition, checkpoint }) => ({
            partition,
            through: logBase + checkpoint,
            since: windowStart(windowMs, received.get(partition) ?? 0),
          })),
          (partition, high, low, receivedAt) => {
            memories.get(partition)?.id(high, low, receivedAt);
          },
        ),
      ),
    ]);
  }

  newestTraces(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
    rows: number,
  ): Promise<{ partition: number; org_id: string; trace_id: string }[]> {
    return readNewestTraces(this.#client, { ...positionParams(openFrom(records, options)), rows });
  }

  async histories(
    records: readonly PartitionRecord[],
    options: HistoryOptions,
  ): Promise<ReadonlyMap<number, PartitionHistory>> {
    const { logBase, tail } = options;
    const above = records.map(({ partition, checkpoint }) => ({ partition, from: logBase + checkpoint + 1 }));
    const params = positionParams(above);
    const [usage, spans, texts, traces, decided] = await Promise.all([
      readUsageThrough(this.#client, above),
      readLandedSpans(this.#client, params),
      readLandedTexts(this.#client, params),
      readOpenTraces(this.#client, positionParams(openFrom(records, options))),
      tail ? this.#decided(above) : new Map<number, Map<string, FullFrom>>(),
      // A power loss may have lost the trace_lookup rows of an insert whose spans survived. A
      // repeated row changes nothing there.
      repairTraceLookup(this.#client, above),
      // A worker that died had not written the activity of agents above its last checkpoint.
      repairAgentActivity(this.#client, above),
    ]);
    const [spansOf, textsOf] = [keysByPartition(spans), keysByPartition(texts)];
    const tracesOf = Map.groupBy(traces, ({ partition }) => partition);
    return new Map(
      records.map(({ partition }): [number, PartitionHistory] => [
        partition,
        {
          spans: spansOf.get(partition) ?? new Set(),
          texts: textsOf.get(partition) ?? new Set(),
          usage_through: usage.get(partition) ?? 0,
          traces: (tracesOf.get(partition) ?? []).map(storedTrace),
          decided: decided.get(partition) ?? new Map<string, FullFrom>(),
        },
      ]),
    );
  }

  /**
   * Returns how tail sampling has decided the traces with rows from the positions on, by partition. A
   * kept trace has no summary row from there on; a summarized trace may have events that a rule kept
   * by themselves. A trace of which only texts have landed was kept.
   */
  async #decided(above: readonly PartitionFrom[]): Promise<Map<number, Map<string, FullFrom>>> {
    const decided = new Map<number, Map<string, FullFrom>>();
    for (const row of await readDecidedTraces(this.#client, positionParams(above))) {
      const { partition, org_id, trace_id, summaries, full, seq, index } = row;
      const own = decided.get(partition) ?? new Map<string, FullFrom>();
      decided.set(partition, own);
      const kept = summaries === 0 ? { log_seq: 0, log_index: 0 } : null;
      const partly = full === 0 ? { log_seq: Infinity, log_index: 0 } : { log_seq: seq, log_index: index };
      own.set(traceKey(org_id, trace_id), kept ?? partly);
    }
    return decided;
  }
}

/** Returns from where on a row of a trace says that its completion was not published. */
const openFrom = (records: readonly PartitionRecord[], { logBase }: HistoryOptions): PartitionFrom[] =>
  records.map(({ partition, completed_through }) => ({ partition, from: logBase + completed_through + 1 }));

function keysByPartition(positions: readonly Position[]): ReadonlyMap<number, ReadonlySet<string>> {
  const keys = new Map<number, Set<string>>();
  for (const { partition, log_seq, log_index, log_sub } of positions) {
    const own = keys.get(partition) ?? new Set<string>();
    keys.set(partition, own);
    own.add(rowKey(log_seq, log_index, log_sub));
  }
  return keys;
}

/**
 * Returns the time from which on ids of a partition are read back, in milliseconds: one window
 * before the newest landed event. That may be long ago if the log waited for the store for longer
 * than the window.
 */
function windowStart(windowMs: number, landedMs: number): number {
  const newest = landedMs > 0 ? Math.min(landedMs, Date.now()) : Date.now();
  return newest - windowMs - RECALL_SLACK_MS;
}
