// Reads the parts of span_texts_recent for the text mover, and moves their rows to span_texts.
import type { ClickHouse } from '../../sql/client/client.ts';
import { MOVER_PARTITION } from '../../sql/stores/landing_fences.ts';
import { dropRecentPart, moveTexts, readRecentParts } from '../../sql/stores/landings.ts';
import type { Fences } from './fences.ts';
import type { RecentPart, TextStore } from './text_mover.ts';

export class ClickHouseTextStore implements TextStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;

  constructor(client: ClickHouse, fences: Fences) {
    this.#client = client;
    this.#fences = fences;
  }

  takeMoverFence(workerId: string): Promise<number> {
    return this.#fences.raiseForMover(workerId);
  }

  async recentParts(): Promise<RecentPart[]> {
    const rows = await readRecentParts(this.#client, {});
    return rows.map(({ age, seq, ...part }) => ({ ...part, age_seconds: age, log_seq_min: seq }));
  }

  async move(parts: readonly RecentPart[], epoch: number, queryId: string): Promise<boolean> {
    await moveTexts(this.#client, {
      parts: parts.map((part) => part.name),
      rows: parts.reduce((sum, part) => sum + part.rows, 0),
      from: Math.min(...parts.map((part) => part.log_seq_min)),
      epoch,
      queryId,
    });
    return (await this.#fences.fencedOff([[MOVER_PARTITION, epoch]])).length === 0;
  }

  dropPart(name: string): Promise<void> {
    return dropRecentPart(this.#client, name);
  }
}
