// What the pipeline asks of ClickHouse: landing statements behind a fence, what has landed, and what a new owner needs.
// Log positions here are the store's: JetStream sequence plus the log's base.
import { setTimeout as sleep } from 'node:timers/promises';
import { classifyStoreError, type ClickHouse } from '../../sql/client/client.ts';
import {
  giveUpStatement,
  killStatement,
  MOVER_PARTITION,
  type OwnedPartition,
  raiseFences,
  raiseMoverFence,
  readFencedOff,
  readNewestEpoch,
  readRunningStatements,
} from '../../sql/stores/landing_fences.ts';
import type { LandingTable, TableSpec } from '../../sql/stores/landing_tables.ts';
import {
  dropRecentPart,
  landLines,
  moveTexts,
  readLandedSpans,
  readLandedTexts,
  readLandedTraces,
  readLandedUsage,
  readNewestPosition,
  readRecentParts,
  repairAgentActivity,
  repairTraceLookup,
  setInsertSync,
  writeAgentActivity,
} from '../../sql/stores/landings.ts';
import {
  eachEventId,
  eachTraceHash,
  readDecidedTraces,
  readOpenTraces,
  readUsageThrough,
} from '../../sql/stores/partition_rows.ts';
import type { AgentHeard } from './agent_activity.ts';
import { rowKey, traceRowKey, type LandingStore } from './landing.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type {
  FullFrom,
  HistoryOptions,
  HistoryStore,
  PartitionHistory,
  PartitionMemory,
} from '../worker/partition_state.ts';
import { storedTrace } from '../traces/stored_trace.ts';
import type { RecentPart, TextStore } from './text_mover.ts';
import { traceKey } from '../traces/open_traces.ts';

/** What is read next, from the checkpoint on, is older than what landed last by a landing or two. */
const RECALL_SLACK_MS = 600_000;
/** How long a new owner waits for statements of former owners to end by themselves before it ends them. */
const FORMER_WAIT_MS = 3000;
const LOOK_MS = 50;

export class ClickHouseLandingStore implements LandingStore, HistoryStore, TextStore {
  readonly #client: ClickHouse;
  readonly #workerId: string;

  constructor(client: ClickHouse, workerId: string) {
    this.#client = client;
    this.#workerId = workerId;
  }

  classify(error: unknown): 'unavailable' | 'refused' {
    return classifyStoreError(error);
  }

  insert(
    spec: TableSpec,
    lines: readonly string[],
    owned: readonly OwnedPartition[],
    queryId: string,
  ): Promise<number> {
    return landLines(this.#client, spec, { lines, owned, queryId });
  }

  /** Resolves when the rows are in the store. */
  writeActivity(heard: readonly AgentHeard[]): Promise<void> {
    return writeAgentActivity(this.#client, heard);
  }

  /** Whether every insert is synced by itself, or rows are made durable otherwise before a checkpoint passes them. */
  syncInserts(each: boolean): Promise<void> {
    return setInsertSync(this.#client, each);
  }

  /**
   * A statement may still lie in a socket, or before an engine that stood still: one that has not begun writes nothing once its id is
   * written here, and one that has is ended. So what it wrote can be looked up when this resolves, and will not become more.
   */
  async end(queryId: string): Promise<void> {
    await giveUpStatement(this.#client, queryId);
    await killStatement(this.#client, queryId);
  }

  fencedOff(owned: readonly OwnedPartition[]): Promise<number[]> {
    return readFencedOff(this.#client, owned);
  }

  async landedKeys(table: LandingTable, partition: number, fromSeq: number): Promise<ReadonlySet<string>> {
    const params = { partition, from: fromSeq };
    switch (table) {
      case 'usage_events':
        return new Set((await readLandedUsage(this.#client, params)).map(({ seq }) => seq));
      case 'traces': {
        const rows = await readLandedTraces(this.#client, params);
        return new Set(rows.map(({ org_id, trace_id, version }) => traceRowKey(org_id, trace_id, version)));
      }
      case 'judge_scores':
        // A score that is written twice is replaced: all are sent again.
        return new Set();
      case 'spans':
      case 'span_texts_recent': {
        const read = table === 'spans' ? readLandedSpans : readLandedTexts;
        const rows = await read(this.#client, params);
        return new Set(rows.map(({ log_seq, log_index, log_sub }) => rowKey(log_seq, log_index, log_sub)));
      }
    }
  }

  mendLookup(partition: number, fromSeq: number): Promise<void> {
    return repairTraceLookup(this.#client, partition, fromSeq);
  }

  /**
   * Fences former owners off: after this resolves, no statement of theirs can still write to these partitions.
   * The fence is written first, so what starts later writes nothing; what had started is waited for.
   */
  async fence(owned: readonly OwnedPartition[]): Promise<void> {
    await raiseFences(this.#client, owned, this.#workerId);
    await this.#outlast('land-');
  }

  async takeMoverFence(workerId: string): Promise<number> {
    const { epoch, rivals } = await raiseMoverFence(this.#client, workerId);
    // Whoever wrote last sees the other; both may step back, and begin again later.
    if (rivals.length > 0) throw new Error(`worker ${rivals.join(', ')} took the fence of the mover at the same time`);
    await this.#outlast('move-');
    return epoch;
  }

  async recentParts(): Promise<RecentPart[]> {
    const rows = await readRecentParts(this.#client, {});
    return rows.map(({ age, seq, ...part }) => ({ ...part, age_seconds: age, log_seq_min: seq }));
  }

  async move(parts: readonly RecentPart[], epoch: number, queryId: string): Promise<boolean> {
    await moveTexts(this.#client, {
      parts: parts.map((part) => part.name),
      from: Math.min(...parts.map((part) => part.log_seq_min)),
      epoch,
      queryId,
    });
    return (await this.fencedOff([[MOVER_PARTITION, epoch]])).length === 0;
  }

  dropPart(name: string): Promise<void> {
    return dropRecentPart(this.#client, name);
  }

  async partitionHistory(
    record: PartitionRecord,
    { logBase, windowMs, tail }: HistoryOptions,
    memory: PartitionMemory,
  ): Promise<PartitionHistory> {
    const { partition } = record;
    const checkpoint = logBase + record.checkpoint;
    const above = checkpoint + 1;
    // Power loss may have taken the look-up's rows of an insert whose spans survived; a repeated row changes nothing there.
    await this.mendLookup(partition, above);
    // A worker that died had not written what it landed after its last checkpoint.
    await repairAgentActivity(this.#client, partition, checkpoint);
    const usage = await readUsageThrough(this.#client, partition);
    const since = windowStart(windowMs, usage.received_ms);
    const [spans, texts, traces, decided] = await Promise.all([
      this.landedKeys('spans', partition, above),
      this.landedKeys('span_texts_recent', partition, above),
      readOpenTraces(this.#client, { partition, through: logBase + record.completed_through }),
      tail ? this.#decided(partition, above) : new Map<string, FullFrom>(),
      eachTraceHash(this.#client, partition, (hash) => {
        memory.trace(hash);
      }),
      eachEventId(this.#client, { partition, checkpoint, since }, (high, low, receivedAt) => {
        memory.id(high, low, receivedAt);
      }),
    ]);
    return { spans, texts, usage_through: usage.log_seq, traces: traces.map(storedTrace), decided };
  }

  /**
   * What tail sampling made of the traces with rows from a position on. A trace that was kept has no summary row after that; one that
   * was not may have events that a rule of their own kept. A trace of which only texts have landed was kept.
   */
  async #decided(partition: number, fromSeq: number): Promise<Map<string, FullFrom>> {
    const rows = await readDecidedTraces(this.#client, { partition, from: fromSeq });
    return new Map(
      rows.map(({ org_id, trace_id, summaries, full, seq, index }): [string, FullFrom] => {
        const key = traceKey(org_id, trace_id);
        if (summaries === 0) return [key, { log_seq: 0, log_index: 0 }];
        return [key, full === 0 ? { log_seq: Infinity, log_index: 0 } : { log_seq: seq, log_index: index }];
      }),
    );
  }

  /** Newest epoch that fences a partition; owners of a log that is new to the store count on from there, or they would be fenced off for good. */
  newestEpoch(): Promise<number> {
    return readNewestEpoch(this.#client);
  }

  /** Newest log position that any table holds; a log that is new to the store counts on from there. */
  newestPosition(): Promise<number> {
    return readNewestPosition(this.#client);
  }

  /**
   * Waits for statements that run now, and ends those that take too long: they began before the fence. This worker's own count
   * too, as it may have lost a partition in the middle of a landing and has it again.
   */
  async #outlast(prefix: string): Promise<void> {
    let left = await readRunningStatements(this.#client, prefix);
    // From the first answer on: a store that stood still until now has had no time to end anything.
    const deadline = performance.now() + FORMER_WAIT_MS;
    while (left.length > 0) {
      if (performance.now() > deadline) {
        // Only killed: some are another's that owns its partitions still, and is told of it by an error. What has not begun meets the fence.
        await Promise.all(left.map((queryId) => killStatement(this.#client, queryId)));
        return;
      }
      await sleep(LOOK_MS);
      const now = new Set(await readRunningStatements(this.#client, prefix));
      left = left.filter((queryId) => now.has(queryId));
    }
  }
}

/**
 * From when on the ids of a partition are recalled, milliseconds: the window before what landed last. That may be long ago, where the log
 * waited for the store longer than the window.
 */
function windowStart(windowMs: number, landedMs: number): number {
  const newest = landedMs > 0 ? Math.min(landedMs, Date.now()) : Date.now();
  return newest - windowMs - RECALL_SLACK_MS;
}
