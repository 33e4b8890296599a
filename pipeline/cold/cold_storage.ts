// Cold storage: the texts of an org's day as one object, written, verified, read back, rewritten and deleted.
//
// States of a day (cold_objects): writing (an object is on its way, under next_key) -> verified (read back and found equal; it is the
// day's object now) -> dropped (its texts are gone from the store). Killed anywhere, the next run takes away what was half written
// and goes on. A day that has an object already gets a new one with the old texts and the new ones together; the old object goes
// when the new one is verified, so nothing that was in it is ever lost.
//
// Guarantees: an object is verified by its length, the SHA-256 of what is read back and the number of its rows. Memory is bounded by a
// row group, whatever the size of a day. One run writes at a time (the lease of its job); anybody may read beside it.
import { createHash } from 'node:crypto';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import type { ColdObject, ColdTables, DueDay, OrgDay } from '../../sql/stores/cold.ts';
import { dateOf } from '../domain/time/days.ts';
import { checkObject, ColdDataError, LocalFile } from './local_file.ts';

export interface ColdStorageDeps {
  store: ObjectStore;
  tables: ColdTables;
  /** Folder of objects that are being read. */
  tempDir: string;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Called between the steps of an object's way. */
  step?: ((step: ColdStep) => Promise<void>) | undefined;
}

export type ColdStep = 'writing' | 'written' | 'verified' | 'replaced' | 'staged' | 'unpacked';

/** How a day got its object: a new one, one with what an earlier one held, or the one that it had, which holds all of it. */
export type ExportOutcome = 'exported' | 'merged' | 'kept';

export interface RestoreOptions {
  traceIds: readonly string[] | null;
  /** Names what is under way. */
  task: string;
  stampsOf: (object: ColdObject) => { restoredOn: number; dropOn: number };
}

/** Texts of days that are put back together: fewer, larger parts with their text index. A day is never parted. */
const UNPACK_ROWS = 50_000;

/** What is written of an object while it is made. */
interface Making {
  day: OrgDay;
  rows: number;
  run: string;
}

/** How often a day's object is looked up anew when another one has taken its place meanwhile. */
const REPLACED_TRIES_MAX = 3;

export class ColdStorage {
  readonly #deps: ColdStorageDeps;

  constructor(deps: ColdStorageDeps) {
    this.#deps = deps;
  }

  /** For messages. */
  get place(): string {
    return this.#deps.store.place;
  }

  /** Takes away what runs that died have left: half-written objects, superfluous ones, texts of merges. */
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
   * Brings the texts of a day that a run takes out into the day's object. When this resolves they may be dropped.
   * @param earlier runs whose texts are still written down
   * @throws ColdDataError when the object that the day has already is missing or corrupt; ObjectStoreError
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
   * Puts the texts of days of an org back where they are read and searched, some days at a time: all of them are taken in and counted
   * before any is put back.
   * @param objects of one org, by day
   * @param traceIds only those of these traces; null: all
   * @param stampsOf see ColdTables.unpack
   * @param done called with the days that are back
   * @throws ColdDataError, before anything of its days is put back
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
      const [first, last] = [gathered.days[0], gathered.days.at(-1)];
      if (first === undefined || last === undefined) return;
      await step?.('staged');
      const range = { org_id: first.org_id, since: first.day, until: last.day };
      const restored = gathered.found === 0 ? 0 : await tables.unpack(task, range, stampsOf(first));
      await tables.dropTask(task);
      await step?.('unpacked');
      done({ days: gathered.days.length, found: gathered.found, restored });
      Object.assign(gathered, { days: [], rows: 0, found: 0 });
    };
    await tables.endUnpacks(task);
    try {
      for (const listed of objects) {
        const [first] = gathered.days;
        // What is put back together has one stamp.
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
            `the object ${object.object_key} is corrupt: ${String(rows)} of its ${String(object.rows)} texts can be told apart`,
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

  /** Objects of an org: the days that have one. */
  async objectsOf(org_id: string, range: { since?: number | null; until?: number | null } = {}): Promise<ColdObject[]> {
    return (await this.#deps.tables.objects(org_id, range)).filter(({ object_key }) => object_key !== '');
  }

  /**
   * Makes a day's object anew without some of its texts, verified as an export is; without any left, deletes it. For erasure: what is
   * read of the day in ClickHouse is the caller's to delete. Only under a lease that keeps runs of retention away.
   * @param condition SQL over the columns of a text (org_id, started_at, trace_id, span_id, prompt, response, …), with its params
   * @returns texts that were taken out
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

  /** @returns false when the object holds every text already */
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
        throw new ColdDataError(`the object ${before.object_key} is corrupt: not all of its texts can be told apart`);
      await this.#make({ day: due, rows, run }, before, () => tables.exportTask(task, signal), signal);
      return true;
    } finally {
      await tables.dropTask(task);
    }
  }

  /** Writes, reads back and compares a new object of a day, which takes the place of the one before. */
  async #make(
    { day, rows, run }: Making,
    before: ColdObject | null,
    content: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, tables, now, step } = this.#deps;
    const { org_id } = day;
    const old = before?.object_key ?? '';
    const next_key = keyOf(day, old === '' ? null : (before?.version ?? 0));
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

  /** Takes in an object of a day, and looks again when another one has taken its place meanwhile. */
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

/** Where a day's object lies; one that takes the place of another gets a name of its own. */
function keyOf({ org_id, day }: OrgDay, revision: number | null): string {
  const name = revision === null ? '' : `.${revision.toString(36)}`;
  return `org=${encodeURIComponent(org_id)}/day=${dateOf(day)}${name}.parquet`;
}
