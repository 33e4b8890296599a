// Cold storage: the texts of an organization's day as one object, written, verified, read back,
// rewritten and deleted.
//
// States of a day (cold_objects): writing (an object is being written under next_key) -> verified
// (read back and found equal; it is now the day's object) -> dropped (the texts are deleted from
// the store). After a crash at any point, the next run removes what was half written and continues.
// A day that already has an object gets a new one with the old and the new texts together; the old
// object is deleted after the new one is verified, so no text is ever lost.
//
// Guarantees: verification compares the length, the SHA-256 of the bytes read back, and the number
// of rows. A row group bounds memory, whatever the size of a day. One run writes at a time (the
// lease of its job); anyone may read meanwhile. Each shard of the store has its own tables and objects.
import { createHash } from 'node:crypto';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import type { ColdObject, ColdTables, DueDay, OrgDay } from '../../sql/stores/cold.ts';
import { documentTerms } from '../domain/text/text_terms.ts';
import { dateOf } from '../domain/time/days.ts';
import { checkObject, ColdDataError, LocalFile } from './local_file.ts';

export interface ColdStorageDeps {
  store: ObjectStore;
  tables: ColdTables;
  /** Name of the shard, which its objects have in their keys; empty for the only shard. */
  shard?: string;
  /** Folder for objects while they are read. */
  tempDir: string;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Called between the steps of writing or restoring an object; for tests. */
  step?: ((step: ColdStep) => Promise<void>) | undefined;
}

export type ColdStep = 'writing' | 'written' | 'verified' | 'replaced' | 'staged' | 'unpacked';

/**
 * How a day got its object: a new one, a new one merged with the texts of the earlier one, or the
 * existing one because it contains every text.
 */
export type ExportOutcome = 'exported' | 'merged' | 'kept';

export interface RestoreOptions {
  traceIds: readonly string[] | null;
  /** Name of the staged texts. */
  task: string;
  stampsOf: (object: ColdObject) => { restoredOn: number; dropOn: number };
}

/** Texts of several days that are staged together, which makes fewer and larger parts. */
const UNPACK_ROWS = 50_000;

/** Facts of an object that are known before it is written. */
interface Making {
  day: OrgDay;
  rows: number;
  run: string;
}

/** Maximum reads of a day's object when another run replaces it meanwhile. */
const REPLACED_TRIES_MAX = 3;

export class ColdStorage {
  readonly #deps: ColdStorageDeps;

  constructor(deps: ColdStorageDeps) {
    this.#deps = deps;
  }

  /** Address of the object store, for messages. */
  get place(): string {
    return this.#deps.store.place;
  }

  /**
   * Removes what crashed runs left: half-written objects, obsolete objects, staged texts of merges.
   */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const { store, tables } = this.#deps;
    for (const object of await tables.unfinished()) {
      await store.delete(object.next_key, signal);
      const state = object.object_key === '' ? 'deleted' : object.state === 'writing' ? 'verified' : object.state;
      await tables.write({ ...object, state, next_key: '', run: object.state === 'writing' ? '' : object.run }, object);
    }
    for (const task of await tables.tasks()) if (task.startsWith(MERGE)) await tables.dropTask(task);
  }

  /**
   * Puts the texts of a day that a run exports into the day's object. Once this resolves the texts
   * may be dropped.
   * @param earlier runs whose log positions are still recorded
   * @throws ColdDataError when the day's existing object is missing or corrupt; ObjectStoreError
   */
  async exportDay(due: DueDay, run: string, earlier: ReadonlySet<string>, signal: AbortSignal): Promise<ExportOutcome> {
    const { store, tables } = this.#deps;
    const before = await tables.object(due);
    if (before === null || before.object_key === '') {
      await this.#make({ day: due, rows: due.rows, run }, before, () => tables.exportDay(due, run, signal), signal);
      return 'exported';
    }
    await checkObject(store, before, signal);
    const covered =
      due.fresh === 0 || (earlier.has(before.run) && (await tables.uncovered(due, run, before.run)) === 0);
    if (!covered && (await this.#merge(before, due, run, signal))) return 'merged';
    await tables.write({ ...before, state: 'verified', run }, before);
    return 'kept';
  }

  /**
   * Restores the texts of an organization's days, a few days at a time. All texts of a group of
   * days are staged and counted before any of them is restored.
   * @param objects of one organization, by day
   * @param traceIds only texts of these traces; null for all
   * @param stampsOf see ColdTables.unpack
   * @param done called with the restored days
   * @throws ColdDataError before any text of the affected days is restored
   */
  async restoreDays(
    objects: readonly ColdObject[],
    { traceIds, task, stampsOf }: RestoreOptions,
    done: (restored: { days: number; found: number; restored: number }) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { tables, step } = this.#deps;
    const gathered = { days: [] as ColdObject[], rows: 0, found: 0 };
    const putBack = async (): Promise<void> => {
      const [first] = gathered.days;
      if (first === undefined) return;
      await step?.('staged');
      const texts = { task, org_id: first.org_id };
      const restored = gathered.found === 0 ? 0 : await tables.unpack(texts, stampsOf(first), documentTerms, signal);
      await tables.dropTask(task);
      await step?.('unpacked');
      done({ days: gathered.days.length, found: gathered.found, restored });
      Object.assign(gathered, { days: [], rows: 0, found: 0 });
    };
    await tables.endUnpacks(task);
    try {
      for (const listed of objects) {
        const [first] = gathered.days;
        // Texts that are restored together share one stamp.
        if (
          first !== undefined &&
          (gathered.rows >= UNPACK_ROWS || stampsOf(first).restoredOn !== stampsOf(listed).restoredOn)
        )
          await putBack();
        const object = await this.#stageObject(listed, task, traceIds, signal);
        if (object === null) continue;
        const { rows } = await tables.staged(task, object.day);
        if (traceIds === null && rows !== object.rows)
          throw new ColdDataError(
            `the object ${object.object_key} is corrupt: ${rows} of its ${object.rows} texts are distinct`,
          );
        gathered.days.push(object);
        gathered.rows += object.rows;
        gathered.found += rows;
      }
      await putBack();
    } finally {
      await tables.dropTask(task);
    }
  }

  /** Returns the days of an organization that have an object. */
  async objectsOf(org_id: string, range: { since?: number | null; until?: number | null } = {}): Promise<ColdObject[]> {
    return (await this.#deps.tables.objects(org_id, range)).filter(({ object_key }) => object_key !== '');
  }

  /**
   * Rewrites a day's object without some of its texts and verifies it like an export; deletes the
   * object when no text is left. The caller deletes the same texts from ClickHouse, and holds a
   * lease that keeps retention from running.
   * @param condition SQL over the columns of a text (org_id, started_at, trace_id, span_id, prompt,
   * response, …), with its parameters
   * @returns the number of removed texts
   */
  async rewrite(
    object: ColdObject,
    condition: { sql: string; params: Record<string, unknown> },
    run: string,
    signal: AbortSignal,
  ): Promise<number> {
    const { tables } = this.#deps;
    const task = mergeTask(run, object);
    await tables.dropTask(task);
    try {
      const staged = await this.#stageObject(object, task, null, signal);
      if (staged === null) return 0;
      await tables.unstage(task, condition.sql, condition.params);
      const { rows } = await tables.staged(task);
      if (rows === staged.rows) return 0;
      if (rows === 0) await this.remove(staged, signal);
      else await this.#make({ day: object, rows, run }, staged, () => tables.exportTask(task, signal), signal);
      return staged.rows - rows;
    } finally {
      await tables.dropTask(task);
    }
  }

  /** Deletes a day's object. */
  async remove(object: ColdObject, signal: AbortSignal): Promise<void> {
    const { store, tables } = this.#deps;
    const going = await tables.write(
      { ...object, state: 'writing', object_key: '', next_key: object.object_key },
      object,
    );
    await store.delete(going.next_key, signal);
    await tables.write({ ...going, state: 'deleted', next_key: '', rows: 0, bytes: 0, sha256: '' }, going);
  }

  /** @returns false when the object already contains every text */
  async #merge(before: ColdObject, due: DueDay, run: string, signal: AbortSignal): Promise<boolean> {
    const { tables } = this.#deps;
    const task = mergeTask(run, due);
    await tables.dropTask(task);
    try {
      await this.#stageObject(due, task, null, signal);
      await tables.stageDay(task, due, run);
      const { rows } = await tables.staged(task);
      if (rows === before.rows) return false;
      if (rows < before.rows)
        throw new ColdDataError(`the object ${before.object_key} is corrupt: not all of its texts are distinct`);
      await this.#make({ day: due, rows, run }, before, () => tables.exportTask(task, signal), signal);
      return true;
    } finally {
      await tables.dropTask(task);
    }
  }

  /** Writes a new object of a day, reads it back, verifies it, and replaces the former object. */
  async #make(
    { day, rows, run }: Making,
    before: ColdObject | null,
    content: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, tables, shard = '', now, step } = this.#deps;
    const { org_id } = day;
    const old = before?.object_key ?? '';
    const next_key = keyOf(shard, day, old === '' ? null : (before?.version ?? 0));
    const nothing = { object_key: '', rows: 0, bytes: 0, sha256: '', exported_ms: 0, dropped_as_of: 0 };
    const writing = await tables.write(
      { ...nothing, ...before, org_id, day: day.day, state: 'writing', next_key, run },
      before,
    );
    await step?.('writing');
    const hash = createHash('sha256');
    let bytes = 0;
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of content()) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    };
    await store.put(next_key, counted(), signal);
    await step?.('written');
    const made = { object_key: next_key, rows, bytes, sha256: hash.digest('hex') };
    await checkObject(store, made, signal);
    const verified = await tables.write(
      { ...writing, ...made, state: 'verified', exported_ms: now(), next_key: old },
      writing,
    );
    await step?.('verified');
    if (old === '') return;
    await store.delete(old, signal);
    await step?.('replaced');
    await tables.write({ ...verified, next_key: '' }, verified);
  }

  /**
   * Stages the texts of a day's object. Reads the day again when another run replaced the object
   * meanwhile.
   */
  async #stageObject(
    day: OrgDay,
    task: string,
    traceIds: readonly string[] | null,
    signal: AbortSignal,
  ): Promise<ColdObject | null> {
    const { store, tables, tempDir } = this.#deps;
    for (let tries = 1; ; tries++) {
      const object = await tables.object(day);
      if (object === null || object.object_key === '') return null;
      let file: LocalFile;
      try {
        file = await LocalFile.fetch(store, object, tempDir, signal);
      } catch (error) {
        const now = await tables.object(day);
        if (error instanceof ColdDataError && now?.object_key !== object.object_key && tries < REPLACED_TRIES_MAX)
          continue;
        throw error;
      }
      try {
        for (const group of file.groups) {
          signal.throwIfAborted();
          await tables.stage(task, await file.read(group), traceIds);
        }
      } finally {
        await file.close();
      }
      return object;
    }
  }
}

const MERGE = 'merge-';
const mergeTask = (run: string, { org_id, day }: OrgDay): string => `${MERGE}${run}-${org_id}-${dateOf(day)}`;

/** Returns the key of a day's object. An object that replaces another gets a name of its own. */
function keyOf(shard: string, { org_id, day }: OrgDay, revision: number | null): string {
  const name = revision === null ? '' : `.${revision.toString(36)}`;
  const ofShard = shard === '' ? '' : `shard=${shard}/`;
  return `org=${encodeURIComponent(org_id)}/${ofShard}day=${dateOf(day)}${name}.parquet`;
}
