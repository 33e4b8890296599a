// Job `reprice`: prices stored calls again after a correction of prices, and updates everything
// that contains their cost. It runs on demand for an organization and a time range; the scheduled
// run only finishes what a crashed worker left.
//
// The job works in plans of about CORRECTIONS_MAX spans. It writes the corrections
// (span_corrections), makes the plan the open one (KV, by CAS), publishes its changes through the
// ingest log to traces and usage, each exactly once, and then sets spans and texts to the values of
// the plan. After a crash at any point the next run finishes the open plan first: its messages are
// the same and are deduplicated, and setting values may be repeated. A worker that was paused and
// lost the job cannot open a plan, because the record has moved on; messages that it repeats for an
// old plan are deduplicated.
//
// A plan is in one shard of the store, with the spans that it corrects, and the job works in one
// shard after the other. The record does not name the shard: after a crash the next run looks for
// the open plan in each of them.
//
// Cost: the job reads all spans of the range. The engine rewrites, in the background, the cost
// columns and the projection of every part that holds a corrected span. It is meant for occasional
// use by operators.
import { randomBytes, randomUUID } from 'node:crypto';
import type { KV } from '@nats-io/kv';
import type { Logger } from '../../ops/platform/logger.ts';
import type { SourceFormat } from '../../schemas/codec.ts';
import {
  type RepriceArgs,
  repriceArgs,
  type RepricingRecord,
  repricingRecord,
} from '../../schemas/records/repricing.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import {
  type CallRow,
  type PlannedCorrection,
  readCalls,
  readChanges,
  readPlan,
  type RepricingStore,
} from '../../sql/stores/repricing.ts';
import { picoToDecimal, picoToUsd, usdToPico } from '../domain/pricing/money.ts';
import { createPriceBook, type OrgPrice, type PriceBook } from '../domain/pricing/pricing.ts';
import {
  COUNTING_ATTRIBUTES,
  COUNTING_PREFIX,
  differs,
  repriced,
  type StoredCall,
} from '../domain/pricing/repricing.ts';
import type { CorrectionLog } from './correction_log.ts';
import type { JobContext, JobResult } from './job.ts';

/**
 * Maximum spans of one plan: about 100 MB in this process while the plan is written, and 8 MB in
 * the engine.
 */
const CORRECTIONS_MAX = 50_000;
/** Maximum spans of one read. */
const PAGE_ROWS = 10_000;
const RECORD_KEY = 'open';

/** A shard of the store, whose calls and plans the job reads and corrects. */
export interface RepriceShard {
  clickhouse: ClickHouse;
  store: RepricingStore;
}

export interface RepriceDeps {
  shards: readonly RepriceShard[];
  log: CorrectionLog;
  /** Opens the bucket `repricings`. */
  kv: () => Promise<KV>;
  /**
   * Reads the organization's own prices from the bucket itself, because a watch may lag behind
   * prices that were just set.
   */
  pricesOf: (org_id: string) => Promise<readonly OrgPrice[]>;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
}

/**
 * Creates the run of the job. Its result counts the spans checked, the spans repriced, the spans
 * whose price is unknowable (sampling kept no attributes, and the price depends on them), the
 * amount added to costs in USD, and the spans of a plan that was finished first.
 */
export function createReprice(deps: RepriceDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ signal, log, args }) => {
    const asked = args === undefined || args === null ? null : repriceArgs.parse(args);
    const turn = await RepricingTurn.take(await deps.kv());
    const finished = await finishOpen(deps, turn, log, signal);
    const counts: Counts = { spans: 0, repriced: 0, unknown: 0, delta: 0n };
    if (asked !== null) await repriceRange(deps, turn, asked, counts, signal);
    const { delta, ...others } = counts;
    return { ...others, delta_usd: picoToUsd(delta), finished };
  };
}

interface Counts {
  spans: number;
  repriced: number;
  unknown: number;
  /** Amount added to costs, in pico-USD. */
  delta: bigint;
}

/** Right to open and close plans, until another run takes it. */
class RepricingTurn {
  readonly #kv: KV;
  readonly #run: string;
  #plan_id: string | null;
  #revision: number;

  private constructor(kv: KV, run: string, plan_id: string | null, revision: number) {
    this.#kv = kv;
    this.#run = run;
    this.#plan_id = plan_id;
    this.#revision = revision;
  }

  static async take(kv: KV): Promise<RepricingTurn> {
    const entry = await kv.get(RECORD_KEY);
    const held = entry?.operation === 'PUT' ? repricingRecord.parse(entry.json()) : null;
    const run = randomUUID();
    const text = JSON.stringify({ plan_id: held?.plan_id ?? null, run } satisfies RepricingRecord);
    const revision =
      entry === null ? await kv.create(RECORD_KEY, text) : await kv.update(RECORD_KEY, text, entry.revision);
    return new RepricingTurn(kv, run, held?.plan_id ?? null, revision);
  }

  /** Id of the open plan; null for none. */
  get plan_id(): string | null {
    return this.#plan_id;
  }

  /**
   * Makes a plan the open one; null for none.
   * @throws Error when another run has taken over
   */
  async move(plan_id: string | null): Promise<void> {
    const text = JSON.stringify({ plan_id, run: this.#run } satisfies RepricingRecord);
    this.#revision = await this.#kv.update(RECORD_KEY, text, this.#revision);
    this.#plan_id = plan_id;
  }
}

/**
 * Finishes the open plan, and deletes plans that were never opened.
 * @returns the number of spans of the finished plan
 */
async function finishOpen(deps: RepriceDeps, turn: RepricingTurn, log: Logger, signal: AbortSignal): Promise<number> {
  const finished = turn.plan_id === null ? 0 : await carryOutOpen(deps, turn, turn.plan_id, signal);
  if (finished > 0)
    log.warn(
      { spans: finished },
      'an interrupted repricing was finished; the rest of its range may have to be requested again',
    );
  for (const { store } of deps.shards) for (const other of await store.plans()) await store.dropPlan(other);
  return finished;
}

/**
 * Carries out the open plan in the shard that has it, and closes the plan.
 * @returns the number of its spans
 */
async function carryOutOpen(
  deps: RepriceDeps,
  turn: RepricingTurn,
  plan_id: string,
  signal: AbortSignal,
): Promise<number> {
  for (const shard of deps.shards) {
    const [plan] = await readPlan(shard.clickhouse, { plan_id }, { signal });
    if (plan !== undefined) return carryOut(deps, shard, turn, { ...plan, plan_id }, signal);
  }
  // No shard has the plan, so nothing of it is left to carry out.
  signal.throwIfAborted();
  await turn.move(null);
  for (const { store } of deps.shards) await store.dropPlan(plan_id);
  return 0;
}

async function repriceRange(
  deps: RepriceDeps,
  turn: RepricingTurn,
  asked: RepriceArgs,
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  for (const { store } of deps.shards) await store.check();
  // Afterwards everything that was accepted before the call has its rows.
  await deps.log.untilLanded(signal);
  const prices = await deps.pricesOf(asked.org_id);
  const book = createPriceBook(() => prices);
  for (const shard of deps.shards) await repriceShard(deps, shard, turn, { asked, book, counts }, signal);
}

interface Range {
  asked: RepriceArgs;
  book: PriceBook;
  counts: Counts;
}

async function repriceShard(
  deps: RepriceDeps,
  shard: RepriceShard,
  turn: RepricingTurn,
  { asked, book, counts }: Range,
  signal: AbortSignal,
): Promise<void> {
  const { clickhouse, store } = shard;
  let planned: PlannedCorrection[] = [];
  const carryOutPlanned = async (): Promise<void> => {
    if (planned.length === 0) return;
    const plan_id = randomBytes(8).toString('hex');
    await store.writePlan(plan_id, asked.org_id, planned);
    planned = [];
    // This fails, if it must, before anything has changed.
    await store.openLookup(plan_id);
    await deps.sync();
    signal.throwIfAborted();
    await turn.move(plan_id);
    const [plan] = await readPlan(clickhouse, { plan_id }, { signal });
    if (plan === undefined) throw new Error(`the plan ${plan_id} has disappeared`);
    await carryOut(deps, shard, turn, { ...plan, plan_id }, signal);
  };
  let after: CallPlace = { started_ms: asked.since, partition: -1, log_seq: '0', log_index: 0, log_sub: 0 };
  for (;;) {
    signal.throwIfAborted();
    const { started_ms: from, partition, log_seq, log_index, log_sub } = after;
    const page = await readCalls(
      clickhouse,
      {
        org_id: asked.org_id,
        from,
        until: asked.until,
        ...(asked.model === null ? {} : { model: asked.model }),
        ...{ partition, log_seq, log_index, log_sub },
        rows: PAGE_ROWS,
        names: [...COUNTING_ATTRIBUTES],
        prefix: COUNTING_PREFIX,
      },
      { signal },
    );
    for (const call of page) look(book, asked.org_id, call, planned, counts);
    const last = page.at(-1);
    if (planned.length >= CORRECTIONS_MAX || last === undefined || page.length < PAGE_ROWS) await carryOutPlanned();
    if (last === undefined || page.length < PAGE_ROWS) return;
    after = last;
  }
}

type CallPlace = Pick<CallRow, 'started_ms' | 'partition' | 'log_seq' | 'log_index' | 'log_sub'>;

/** Adds a call to the plan if its stored cost or price differs. */
function look(book: PriceBook, org_id: string, call: CallRow, planned: PlannedCorrection[], counts: Counts): void {
  const stored = storedCall(org_id, call);
  const now = repriced(book, stored);
  counts.spans += 1;
  if (now === null) counts.unknown += 1;
  if (now === null || !differs(stored, now)) return;
  counts.repriced += 1;
  counts.delta += now.cost_pico_usd - stored.cost_pico_usd;
  planned.push({
    // The counting attributes are long and no longer needed.
    call: { ...call, counting: [] },
    cost_usd: picoToDecimal(now.cost_pico_usd),
    price_source: now.price.source,
    price_input_usd_per_mtok: now.price.input_usd_per_mtok,
    price_output_usd_per_mtok: now.price.output_usd_per_mtok,
    price_cached_input_usd_per_mtok: now.price.cached_input_usd_per_mtok,
  });
}

function storedCall(org_id: string, call: CallRow): StoredCall {
  return {
    org_id,
    source_format: call.source_format as SourceFormat,
    model: call.model,
    started_at: call.started_ms,
    input_tokens: call.input_tokens,
    output_tokens: call.output_tokens,
    cached_input_tokens: call.cached_input_tokens,
    cost_pico_usd: usdToPico(call.cost_usd),
    price: {
      source: call.price_source,
      input_usd_per_mtok: call.price_input_usd_per_mtok,
      output_usd_per_mtok: call.price_output_usd_per_mtok,
      cached_input_usd_per_mtok: call.price_cached_input_usd_per_mtok,
    },
    sampled: call.sampled,
    attributes: Object.fromEntries(call.counting.map(([name, text]): [string, unknown] => [name, JSON.parse(text)])),
  };
}

type OpenPlan = Awaited<ReturnType<typeof readPlan>>[number] & { plan_id: string };

/**
 * Carries out and closes the open plan of a shard, whatever part of it is done already.
 * @returns the number of its spans
 */
async function carryOut(
  { log, sync }: RepriceDeps,
  { clickhouse, store }: RepriceShard,
  turn: RepricingTurn,
  { plan_id, ...plan }: OpenPlan,
  signal: AbortSignal,
): Promise<number> {
  const changes = await readChanges(clickhouse, { plan_id }, { signal });
  await store.openLookup(plan_id);
  await log.send(
    { plan_id, org_id: plan.org },
    changes.map(({ delta_usd, ...change }) => ({ ...change, cost_usd: delta_usd })),
    signal,
  );
  await store.correct(plan_id, plan, signal);
  await sync();
  signal.throwIfAborted();
  await turn.move(null);
  await store.dropPlan(plan_id);
  return plan.spans;
}
