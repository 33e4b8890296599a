// Job reprice: prices stored calls anew after a correction of prices, and makes everything that holds their cost agree. On demand
// for an org and range; by schedule it only finishes what a worker that died has left.
//
// It goes in steps of some CORRECTIONS_MAX spans, each a plan: what is to be corrected is written down (span_corrections), the plan is
// made the one under way (KV, by CAS), its changes go through the ingest log to traces and usage, each exactly once, and then spans
// and texts are set to what the plan says. Killed anywhere, the next run finishes the plan before it looks at anything: the
// messages are the same ones, and are recognised; the rest sets values. A worker that was paused and lost the job can begin
// no plan, as the record has moved on; what it sends of an old one is recognised.
//
// Costs: all spans of the range are read; every part that holds a corrected span gets its columns of cost written anew, and its
// projection, in the background of the engine. For operators, now and then.
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

/** Spans of one plan: some 100 MB here while it is written down, and 8 MB in the engine. */
const CORRECTIONS_MAX = 50_000;
/** Spans that one read takes. */
const PAGE_ROWS = 10_000;
const RECORD_KEY = 'open';

export interface RepriceDeps {
  clickhouse: ClickHouse;
  store: RepricingStore;
  log: CorrectionLog;
  /** Bucket `repricings`. */
  kv: () => Promise<KV>;
  /** The org's own prices, from the bucket itself: a watch may be behind whoever has just set them. */
  pricesOf: (org_id: string) => Promise<readonly OrgPrice[]>;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
}

/**
 * The job's run. Result: spans looked at, those repriced, those whose price cannot be known any more (sampling kept no
 * attributes, and these counted), what was added to costs in USD, and spans of a plan that was finished first.
 */
export function createReprice(deps: RepriceDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ signal, log, args }) => {
    const asked = args === undefined || args === null ? null : repriceArgs.parse(args);
    const turn = await Turn.take(await deps.kv());
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
  /** Pico-USD. */
  delta: bigint;
}

/** The right to begin and to end plans, until another run takes it. */
class Turn {
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

  static async take(kv: KV): Promise<Turn> {
    const entry = await kv.get(RECORD_KEY);
    const held = entry?.operation === 'PUT' ? repricingRecord.parse(entry.json()) : null;
    const run = randomUUID();
    const text = JSON.stringify({ plan_id: held?.plan_id ?? null, run } satisfies RepricingRecord);
    const revision =
      entry === null ? await kv.create(RECORD_KEY, text) : await kv.update(RECORD_KEY, text, entry.revision);
    return new Turn(kv, run, held?.plan_id ?? null, revision);
  }

  /** The plan under way. */
  get plan_id(): string | null {
    return this.#plan_id;
  }

  /** @throws when another run has come since */
  async move(plan_id: string | null): Promise<void> {
    const text = JSON.stringify({ plan_id, run: this.#run } satisfies RepricingRecord);
    this.#revision = await this.#kv.update(RECORD_KEY, text, this.#revision);
    this.#plan_id = plan_id;
  }
}

/** Finishes the plan under way, and takes away those that never were. @returns spans of the plan that was finished */
async function finishOpen(deps: RepriceDeps, turn: Turn, log: Logger, signal: AbortSignal): Promise<number> {
  const { plan_id } = turn;
  const finished = plan_id === null ? 0 : await carryOut(deps, turn, plan_id, signal);
  if (finished > 0)
    log.warn(
      { spans: finished },
      'a repricing that had been broken off was finished; the rest of its range may have to be asked for again',
    );
  for (const other of await deps.store.plans()) await deps.store.dropPlan(other);
  return finished;
}

async function repriceRange(
  deps: RepriceDeps,
  turn: Turn,
  asked: RepriceArgs,
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  const { clickhouse, store, log } = deps;
  await store.check();
  // What was accepted before the call has its row then.
  await log.landed(signal);
  const prices = await deps.pricesOf(asked.org_id);
  const book = createPriceBook(() => prices);
  let planned: PlannedCorrection[] = [];
  const carryOutPlanned = async (): Promise<void> => {
    if (planned.length === 0) return;
    const plan_id = randomBytes(8).toString('hex');
    await store.writePlan(plan_id, asked.org_id, planned);
    planned = [];
    // Fails, where it has to, before anything is changed.
    await store.openLookup(plan_id);
    await deps.sync();
    signal.throwIfAborted();
    await turn.move(plan_id);
    await carryOut(deps, turn, plan_id, signal);
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

/** Adds a call to the plan where it is stored with another cost or price. */
function look(book: PriceBook, org_id: string, call: CallRow, planned: PlannedCorrection[], counts: Counts): void {
  const stored = storedCall(org_id, call);
  const now = repriced(book, stored);
  counts.spans += 1;
  if (now === null) counts.unknown += 1;
  if (now === null || !differs(stored, now)) return;
  counts.repriced += 1;
  counts.delta += now.cost_pico_usd - stored.cost_pico_usd;
  planned.push({
    // What was counted is of no more use, and long.
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

/** Does all of a plan that is under way, whatever of it was done before, and ends it. @returns its spans */
async function carryOut(
  { clickhouse, store, log, sync }: RepriceDeps,
  turn: Turn,
  plan_id: string,
  signal: AbortSignal,
): Promise<number> {
  const [plan] = await readPlan(clickhouse, { plan_id }, { signal });
  if (plan !== undefined) {
    const changes = await readChanges(clickhouse, { plan_id }, { signal });
    await store.openLookup(plan_id);
    await log.send(
      { plan_id, org_id: plan.org },
      changes.map(({ delta_usd, ...change }) => ({ ...change, cost_usd: delta_usd })),
      signal,
    );
    await store.correct(plan_id, plan, signal);
    await sync();
  }
  signal.throwIfAborted();
  await turn.move(null);
  await store.dropPlan(plan_id);
  return plan?.spans ?? 0;
}
