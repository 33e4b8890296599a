// Lands rows in ClickHouse behind a fence, and looks up what has landed. Log positions are the
// store's: position in the log plus log base.
import { classifyStoreError, type ClickHouse, type Priority } from '../../sql/client/client.ts';
import type { LandingTable, TableSpec } from '../../sql/stores/landing_tables.ts';
import { completeFences } from '../../sql/stores/landing_fences.ts';
import { positionParams } from '../../sql/stores/positions.ts';
import {
  landRows,
  readLandedSpans,
  readLandedTexts,
  readLandedTraces,
  readLandedUsage,
  readNewestPosition,
  repairTraceLookup,
  setInsertSync,
  writeAgentActivity,
} from '../../sql/stores/landings.ts';
import type { AgentHeard } from './agent_activity.ts';
import type { Fences, PartitionEpoch } from './fences.ts';
import type { LandingStore, StoreFailure } from './lander.ts';
import type { LandingPiece } from './landing_piece.ts';
import { rowKey, traceRowKey } from './landing_row.ts';

export class ClickHouseLandingStore implements LandingStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;

  constructor(client: ClickHouse, fences: Fences) {
    this.#client = client;
    this.#fences = fences;
  }

  classify(error: unknown): StoreFailure {
    return classifyStoreError(error);
  }

  async insert(
    spec: TableSpec,
    piece: LandingPiece,
    owned: readonly PartitionEpoch[],
    queryId: string,
    priority: Priority = 'usual',
  ): Promise<void> {
    try {
      await landRows(this.#client, spec, { body: piece.body(), owned, queryId, priority });
    } catch (error) {
      // The server may have started since a worker told it the fences.
      if (this.classify(error) === 'fenced') await completeFences(this.#client);
      throw error;
    }
  }

  /** Resolves once the rows are in the store. */
  writeActivity(heard: readonly AgentHeard[]): Promise<void> {
    return writeAgentActivity(this.#client, heard);
  }

  /**
   * Sets whether ClickHouse syncs every insert. If it does not, rows must be made durable otherwise
   * before each checkpoint.
   */
  syncInserts(each: boolean): Promise<void> {
    return setInsertSync(this.#client, each);
  }

  end(queryId: string): Promise<void> {
    return this.#fences.giveUp(queryId);
  }

  fencedOff(owned: readonly PartitionEpoch[]): Promise<number[]> {
    return this.#fences.fencedOff(owned);
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
        // A repeated score replaces the former one, so all are sent again.
        return new Set();
      case 'spans':
      case 'span_texts_recent': {
        const read = table === 'spans' ? readLandedSpans : readLandedTexts;
        const rows = await read(this.#client, positionParams([params]));
        return new Set(rows.map(({ log_seq, log_index, log_sub }) => rowKey(log_seq, log_index, log_sub)));
      }
    }
  }

  repairLookup(partition: number, fromSeq: number): Promise<void> {
    return repairTraceLookup(this.#client, [{ partition, from: fromSeq }]);
  }

  /**
   * Returns the newest log position in any table. A log that is new to the store counts on from
   * there.
   */
  newestPosition(): Promise<number> {
    return readNewestPosition(this.#client);
  }
}
