// Statements of the deletion of an organization: delete its rows from every table, and count what
// is left. The list of tables comes from the engine's catalog, so it includes tables that are added
// later. A store is one shard; OrgErasureOfShards deletes in all of them, one after the other.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { sumOf } from './erasure_of_shards.ts';
import { eraseDeadPostings } from './posting_rewrites.ts';
import { BELOW_MASK, deleteRows, waitForMoves } from './rewrites.ts';

const TIMEOUT_MS = 110_000;
/**
 * Texts move from the first table to the second. Reads by id need
 * trace_lookup, so it is emptied last.
 */
const FIRST = ['span_texts_recent', 'span_texts'];
const LAST = ['trace_lookup'];

export class OrgErasureStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /** Returns the tables that hold rows of organizations, in the order in which to empty them. */
  async tables(): Promise<string[]> {
    const rows = await this.#client.rows<unknown>({
      name: 'org_tables',
      sql: `SELECT name FROM system.tables WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree')
        AND name IN (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'org_id') ORDER BY name`,
      params: {},
      timeoutMs: TIMEOUT_MS,
    });
    const names = z
      .array(z.object({ name: z.string().regex(/^\w+$/) }))
      .parse(rows)
      .map(({ name }) => name);
    return inOrder(names);
  }

  /**
   * Returns the number of the organization's rows by table, masked ones included; only tables that
   * hold some.
   */
  async remaining(org_id: string): Promise<Map<string, number>> {
    const left = new Map<string, number>();
    for (const table of await this.tables()) {
      const [row] = await this.#client.rows<unknown>({
        name: 'org_remaining',
        sql: `SELECT count() AS n FROM ${table} WHERE org_id = {org_id:String} ${BELOW_MASK}`,
        params: { org_id },
        timeoutMs: TIMEOUT_MS,
      });
      const { n } = z.object({ n: z.coerce.number() }).parse(row);
      if (n > 0) left.set(table, n);
    }
    return left;
  }

  /**
   * Deletes the organization's rows from the given tables, and then the postings of all texts that
   * are gone: without tables too, because a worker that died may have deleted the texts.
   * @throws Error naming the table whose rows cannot be deleted
   */
  async erase(org_id: string, tables: Iterable<string>, signal: AbortSignal): Promise<void> {
    for (const table of tables) {
      signal.throwIfAborted();
      if (table === 'span_texts') await waitForMoves(this.#client, signal);
      const rows = { table, where: 'org_id = {org_id:String}', params: { org_id }, mine: `'${org_id}'` };
      await deleteRows(this.#client, rows, signal);
    }
    await eraseDeadPostings(this.#client, signal);
  }
}

/** The deletion of an organization in all shards. */
export class OrgErasureOfShards {
  readonly #shards: readonly OrgErasureStore[];

  constructor(shards: readonly OrgErasureStore[]) {
    this.#shards = shards;
  }

  /** Returns the number of the organization's rows by table, in the order in which to empty the tables. */
  async remaining(org_id: string): Promise<Map<string, number>> {
    const left = await sumOf(this.#shards, (shard) => shard.remaining(org_id));
    return new Map(inOrder([...left.keys()]).map((table) => [table, left.get(table) ?? 0]));
  }

  /**
   * Deletes the organization's rows from the given tables of every shard.
   * @throws Error naming the table whose rows cannot be deleted
   */
  async erase(org_id: string, tables: Iterable<string>, signal: AbortSignal): Promise<void> {
    const given = [...tables];
    for (const shard of this.#shards) await shard.erase(org_id, given, signal);
  }
}

/** Returns tables in the order in which to empty them. */
function inOrder(tables: readonly string[]): string[] {
  const between = tables.filter((table) => !FIRST.includes(table) && !LAST.includes(table)).sort();
  return [...FIRST, ...between, ...LAST].filter((table) => tables.includes(table));
}
