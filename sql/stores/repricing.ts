// Statements of a repricing: reads calls, stores a plan of corrections, and corrects spans and
// texts by it. Apart from erasure and retention this is the only place where landed rows change: a
// mutation in the engine's background rewrites the cost columns of all parts that hold a span of
// the plan. Its values come from a table in the engine's memory, so that one pass carries out a
// plan. Guarantees: a correction sets the values of the plan, so it may be repeated. A plan is
// written completely or not at all. Only for tables that are not replicated, because the table of
// values belongs to one server.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { SPAN_FLAGS } from '../../pipeline/domain/traces/span_flags.ts';
import { defineQuery } from '../client/query.ts';

const count = z.coerce.number();
const price = z.number().nullable();
const TIMEOUT_MS = 110_000;
const POLL_MS = 100;
/** Time after which a mutation that keeps failing is cancelled. */
const FAILING_MS_MAX = 60_000;
/**
 * Maximum corrections of a table until all of its rows match the plan: a text may be moving between
 * its two tables.
 */
const TRIES_MAX = 5;

/** Page of stored calls. `counting` holds attributes by name, as JSON text. */
export const readCalls = defineQuery({
  name: 'repricing_calls',
  file: 'repricing/calls.sql',
  timeoutMs: TIMEOUT_MS,
  params: z.object({
    org_id: z.string(),
    from: z.int(),
    until: z.int(),
    model: z.string().optional(),
    partition: z.int(),
    log_seq: z.string(),
    log_index: z.int(),
    log_sub: z.int(),
    rows: z.int(),
    names: z.array(z.string()),
    prefix: z.string(),
  }),
  row: z.object({
    started_ms: count,
    received_ms: count,
    trace_id: z.string(),
    source_format: z.string(),
    model: z.string(),
    agent_id: z.string(),
    department: z.string(),
    realm: z.string(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cached_input_tokens: z.int(),
    cost_usd: z.string(),
    price_source: z.string(),
    price_input_usd_per_mtok: price,
    price_output_usd_per_mtok: price,
    price_cached_input_usd_per_mtok: price,
    sampled: z.boolean(),
    counting: z.array(z.tuple([z.string(), z.string()])),
    partition: z.int(),
    log_seq: z.string(),
    log_index: z.int(),
    log_sub: z.int(),
  }),
});
export type CallRow = Awaited<ReturnType<typeof readCalls>>[number];

/** Amounts that a plan adds, as decimal text and always in the same order. */
export const readChanges = defineQuery({
  name: 'repricing_changes',
  file: 'repricing/changes.sql',
  timeoutMs: TIMEOUT_MS,
  params: z.object({ plan_id: z.string() }),
  row: z.object({
    trace_id: z.string(),
    hour: count,
    day: z.int(),
    agent_id: z.string(),
    model: z.string(),
    department: z.string(),
    realm: z.string(),
    delta_usd: z.string(),
  }),
});

/**
 * Returns at most one row. `marks` counts the spans that get or lose the mark of a missing price.
 */
export const readPlan = defineQuery({
  name: 'repricing_plan',
  file: 'repricing/plan.sql',
  params: z.object({ plan_id: z.string() }),
  row: z.object({ org: z.string(), from_ms: count, to_ms: count, spans: count, marks: count }),
});
type Plan = Awaited<ReturnType<typeof readPlan>>[number];

/** Span with its corrected cost. */
export interface PlannedCorrection {
  call: CallRow;
  cost_usd: string;
  price_source: string;
  price_input_usd_per_mtok: number | null;
  price_output_usd_per_mtok: number | null;
  price_cached_input_usd_per_mtok: number | null;
}

const KEY = 'partition, log_seq, log_index, log_sub';
const VALUES = [
  'cost_usd',
  'price_source',
  'price_input_usd_per_mtok',
  'price_output_usd_per_mtok',
  'price_cached_input_usd_per_mtok',
] as const;
const lookupName = (plan_id: string): string => `span_corrections_${plan_id}`;
const UTC = (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' ');

/**
 * Returns the expression for the attributes of a span, with or without the mark of a missing price.
 */
const MARKED = (
  source: string,
): string => `if(NOT sampled OR (price_source = 'missing') = (${source} = 'missing'), attributes,
  concat('{', arrayStringConcat(arrayConcat(
    arrayMap(kv -> concat(toJSONString(kv.1), ':', kv.2), arrayFilter(kv -> kv.1 != 'price_missing', JSONExtractKeysAndValuesRaw(attributes))),
    if(${source} = 'missing', ['"price_missing":true'], [])), ','), '}'))`;

/** Returns the expression for the flags of a span, which are 0 where they are not known. */
const FLAGGED = (source: string): string =>
  `if(flags = 0, flags, bitOr(bitAnd(flags, ${0xff_ff - SPAN_FLAGS.price_missing}), if(${source} = 'missing', ${SPAN_FLAGS.price_missing}, 0)))`;

export class RepricingStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /** @throws Error on a cluster */
  async check(): Promise<void> {
    const [row] = await this.#rows<{ engine: string }>(
      'repricing_engine',
      "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'spans'",
    );
    if (row?.engine.startsWith('Replicated') === true) throw new Error('spans on a cluster cannot be repriced');
  }

  /** Returns the ids of stored plans, and of plans whose values are in memory. */
  async plans(): Promise<string[]> {
    const prefix = lookupName('');
    const rows = await this.#rows<{ id: string }>(
      'repricing_plans',
      `SELECT DISTINCT plan_id AS id FROM span_corrections
       UNION DISTINCT SELECT substring(name, ${prefix.length + 1}) AS id FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '${prefix}')`,
    );
    return rows.map(({ id }) => id);
  }

  async writePlan(plan_id: string, org_id: string, corrections: readonly PlannedCorrection[]): Promise<void> {
    const lines = corrections.map(({ call, ...to }) =>
      JSON.stringify({
        plan_id,
        org_id,
        partition: call.partition,
        log_seq: call.log_seq,
        log_index: call.log_index,
        log_sub: call.log_sub,
        started_at: UTC(call.started_ms),
        received_at: UTC(call.received_ms),
        trace_id: call.trace_id,
        agent_id: call.agent_id,
        model: call.model,
        department: call.department,
        realm: call.realm,
        old_cost_usd: call.cost_usd,
        old_price_source: call.price_source,
        ...to,
      }),
    );
    await this.#client.execute({
      name: 'repricing_write_plan',
      sql: 'INSERT INTO span_corrections FORMAT JSONEachRow',
      body: lines.join('\n'),
      timeoutMs: TIMEOUT_MS,
    });
  }

  /**
   * Loads the values of a plan into the table that mutations read. Fails before anything changes
   * where the server does not allow it.
   */
  async openLookup(plan_id: string): Promise<void> {
    const name = lookupName(plan_id);
    await this.#run(
      'repricing_open_lookup',
      `CREATE TABLE IF NOT EXISTS ${name} (partition UInt16, log_seq UInt64, log_index UInt32, log_sub UInt32, planned UInt8,
        cost_usd Decimal(18, 12), price_source String, price_input_usd_per_mtok Nullable(Float64), price_output_usd_per_mtok Nullable(Float64),
        price_cached_input_usd_per_mtok Nullable(Float64)) ENGINE = Join(ANY, LEFT, ${KEY})`,
    );
    // The first of equal keys wins, so loading the values again changes nothing.
    await this.#run(
      'repricing_fill_lookup',
      `INSERT INTO ${name} (${KEY}, planned, ${VALUES.join(', ')}) SELECT ${KEY}, 1, ${VALUES.join(', ')} FROM span_corrections WHERE plan_id = {plan_id:String}`,
      { plan_id },
    );
  }

  /** Corrects spans and texts by a plan. Resolves when every row matches the plan. */
  async correct(plan_id: string, plan: Plan, signal: AbortSignal): Promise<void> {
    const get = (column: string): string =>
      `joinGet('${this.#client.database}.${lookupName(plan_id)}', '${column}', ${KEY})`;
    const where = `org_id = {org:String} AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC') AND ${get('planned')} = 1`;
    const cost = `cost_usd = ${get('cost_usd')}`;
    const spans = VALUES.map((column) => `${column} = ${get(column)}`);
    if (plan.marks > 0)
      spans.push(`attributes = ${MARKED(get('price_source'))}`, `flags = ${FLAGGED(get('price_source'))}`);
    const wrongSpan = `(cost_usd != ${get('cost_usd')} OR price_source != ${get('price_source')})`;
    const wrong = `cost_usd != ${get('cost_usd')}`;
    const { org, from_ms, to_ms } = plan;
    const params = { org, from_ms, to_ms };
    const update = (table: string, set: readonly string[]) =>
      this.#mutate(
        plan_id,
        table,
        `ALTER TABLE ${table} UPDATE ${set.join(', ')} WHERE ${where} SETTINGS mutations_sync = 0`,
        params,
        signal,
      );
    await update('spans', spans);
    await this.#expectNone('spans', `${where} AND ${wrongSpan}`, params);
    for (let tries = 1; ; tries += 1) {
      await update('span_texts_recent', [cost]);
      // The text mover may have read texts before the correction; they arrive in the other table
      // with the old cost.
      await this.#waitForMoves(signal);
      await update('span_texts', [cost]);
      const left =
        (await this.#count('span_texts_recent', `${where} AND ${wrong}`, params)) +
        (await this.#count('span_texts', `${where} AND ${wrong}`, params));
      if (left === 0) return;
      if (tries >= TRIES_MAX) throw new Error(`${left} texts still have another cost`);
    }
  }

  /** Deletes a plan and its values. */
  async dropPlan(plan_id: string): Promise<void> {
    await this.#run('repricing_drop_plan', 'ALTER TABLE span_corrections DROP PARTITION {plan_id:String}', { plan_id });
    await this.#run('repricing_drop_lookup', `DROP TABLE IF EXISTS ${lookupName(plan_id)} SYNC`);
    // A mutation that a paused worker started at the last moment finds no values, and would block
    // all others.
    await this.#giveUp(plan_id);
  }

  async #giveUp(plan_id: string): Promise<void> {
    await this.#run(
      'repricing_give_up',
      'KILL MUTATION WHERE database = currentDatabase() AND command LIKE {mine:String} AND NOT is_done SYNC',
      {
        mine: `%${lookupName(plan_id)}%`,
      },
    );
  }

  /**
   * Runs a mutation in the engine's background, for any length of time. Waits for one that an
   * earlier attempt left running, too.
   */
  async #mutate(
    plan_id: string,
    table: string,
    sql: string,
    params: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#run('repricing_correct', sql, params);
    const mine = { table, mine: `%${lookupName(plan_id)}%` };
    let failingSince: number | null = null;
    for (;;) {
      const open = await this.#rows<{ reason: string }>(
        'repricing_mutations',
        'SELECT latest_fail_reason AS reason FROM system.mutations WHERE database = currentDatabase() AND table = {table:String} AND command LIKE {mine:String} AND NOT is_done',
        mine,
      );
      if (open.length === 0) return;
      const failing = open.find(({ reason }) => reason !== '');
      failingSince = failing === undefined ? null : (failingSince ?? performance.now());
      if (failing !== undefined && performance.now() - (failingSince ?? Infinity) > FAILING_MS_MAX) {
        // A failing mutation blocks every later one.
        await this.#giveUp(plan_id);
        throw new Error(`${table} cannot be corrected: ${failing.reason}`);
      }
      await pause(signal);
    }
  }

  async #waitForMoves(signal: AbortSignal): Promise<void> {
    const running = async (): Promise<string[]> => {
      const rows = await this.#rows<{ query_id: string }>(
        'repricing_moves',
        "SELECT query_id FROM system.processes WHERE current_database = currentDatabase() AND query_id LIKE 'move-%'",
      );
      return rows.map(({ query_id }) => query_id);
    };
    for (let left = await running(); left.length > 0;) {
      await pause(signal);
      const now = new Set(await running());
      left = left.filter((query_id) => now.has(query_id));
    }
  }

  async #expectNone(table: string, where: string, params: Record<string, unknown>): Promise<void> {
    const left = await this.#count(table, where, params);
    if (left > 0) throw new Error(`${left} rows of ${table} still have another cost`);
  }

  async #count(table: string, where: string, params: Record<string, unknown>): Promise<number> {
    const [row] = await this.#rows<{ n: string }>(
      'repricing_left',
      `SELECT toString(count()) AS n FROM ${table} WHERE ${where}`,
      params,
    );
    return Number(row?.n ?? 0);
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown> = {}): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: TIMEOUT_MS });
  }

  async #run(name: string, sql: string, params: Record<string, unknown> = {}): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: TIMEOUT_MS });
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  signal.throwIfAborted();
}
