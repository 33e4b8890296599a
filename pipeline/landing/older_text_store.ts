// Reads and statements of ClickHouse for older texts and for the sweep of postings.
import type { ClickHouse } from '../../sql/client/client.ts';
import { MOVER_PARTITION } from '../../sql/stores/landing_fences.ts';
import {
  cancelMutation,
  countDocuments,
  numberTexts,
  readMoverMutations,
  readNumbered,
  readOlderParts,
  readOlderSlices,
  readOrphanedSegments,
  readParts,
  readSweptEpoch,
  readUnsweptSegments,
  removeOrphans,
  writePostings,
  writeSweptEpoch,
} from '../../sql/stores/postings.ts';
import type { Fences } from './fences.ts';
import type { NumberedOlderPart, Numbers, OlderPart, OlderTextStore } from './older_texts.ts';
import type { Part } from './part_names.ts';
import type { PlaceStore } from './place_sweep.ts';

/** Time after which a mutation that keeps failing is cancelled: it would block every later one. */
const FAILING_MS_MAX = 60_000;

export class ClickHouseOlderTextStore implements OlderTextStore, PlaceStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;
  readonly #workerId: string;
  #statements = 0;
  /** When a mutation was first seen failing; null while none fails. */
  #failingSince: number | null = null;

  constructor(client: ClickHouse, fences: Fences, workerId: string) {
    this.#client = client;
    this.#fences = fences;
    this.#workerId = workerId;
  }

  async olderParts(): Promise<OlderPart[]> {
    const rows = await readOlderParts(this.#client);
    return rows.map((part) => ({ ...part, merging: part.merging === 1 }));
  }

  parts(): Promise<Part[]> {
    return readParts(this.#client, { table: 'span_texts' });
  }

  slices({ name, first }: NumberedOlderPart, sliceRows: number): Promise<Numbers[]> {
    return readOlderSlices(this.#client, { part: name, first, slice_rows: sliceRows });
  }

  writePostings(part: NumberedOlderPart, slice: Numbers, epoch: number, queryId: string): Promise<number> {
    return writePostings(this.#client, 'span_texts', slice, { parts: [part], epoch, queryId });
  }

  async setNumbers(parts: readonly NumberedOlderPart[], epoch: number): Promise<void> {
    this.#statements += 1;
    await numberTexts(this.#client, { parts, epoch, queryId: `number-${this.#workerId}-${epoch}-${this.#statements}` });
  }

  numbered(range: Numbers): Promise<number> {
    return readNumbered(this.#client, range);
  }

  async settled(): Promise<boolean> {
    const open = await readMoverMutations(this.#client);
    const failing = open.find(({ reason }) => reason !== '');
    this.#failingSince = failing === undefined ? null : (this.#failingSince ?? performance.now());
    if (failing !== undefined && performance.now() - (this.#failingSince ?? Infinity) > FAILING_MS_MAX) {
      await cancelMutation(this.#client, failing);
      this.#failingSince = null;
      throw new Error(`a mutation of ${failing.table} fails: ${failing.reason}`);
    }
    return open.length === 0;
  }

  async isNewest(epoch: number): Promise<boolean> {
    return (await this.#fences.fencedOff([[MOVER_PARTITION, epoch]])).length === 0;
  }

  sweptEpoch(): Promise<number> {
    return readSweptEpoch(this.#client);
  }

  unsweptSegments(from: bigint, until: bigint): Promise<bigint[]> {
    return readUnsweptSegments(this.#client, from, until);
  }

  orphaned(segments: readonly bigint[]): Promise<bigint[]> {
    return readOrphanedSegments(this.#client, segments);
  }

  documents(segments: readonly bigint[]): Promise<number> {
    return countDocuments(this.#client, segments);
  }

  removeOrphans(segments: readonly bigint[], documents: number): Promise<void> {
    return removeOrphans(this.#client, segments, documents);
  }

  writeSwept(epoch: number): Promise<void> {
    return writeSweptEpoch(this.#client, epoch, this.#workerId);
  }
}
