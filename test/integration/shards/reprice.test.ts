// Repricing in two shards, also when it is interrupted while the plan of a shard is open. Two
// databases of one engine stand for the shards; the ingest log and KV are stand-ins.
import type { KV } from '@nats-io/kv';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { CorrectionLog } from '../../../pipeline/jobs/correction_log.ts';
import { createReprice, type RepriceDeps } from '../../../pipeline/jobs/reprice.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import type { CostChange } from '../../../schemas/codec.ts';
import { RepricingStore } from '../../../sql/stores/repricing.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const MODEL = 'our-llama';
const SINCE = Date.UTC(2026, 2, 2);
let shards: TestStore[] = [];
beforeAll(async () => {
  shards = [await openTestStore(), await openTestStore()];
});
afterAll(async () => {
  for (const shard of shards) await shard.close();
});

/** Returns a call of a million tokens, priced at one USD. */
const aCall = (trace_id: string): Span =>
  aSpan({
    trace_id,
    model: MODEL,
    started_at: SINCE + 1000,
    ended_at: SINCE + 2000,
    received_at: SINCE + 3000,
    input_tokens: 1_000_000,
    output_tokens: 0,
    cost_pico_usd: 1_000_000_000_000n,
    price: { source: 'org', input_usd_per_mtok: 1, output_usd_per_mtok: 1, cached_input_usd_per_mtok: null },
  });

/** Returns a bucket that holds one key in memory. */
function aBucket(): { kv: KV; planId: () => unknown } {
  let held: { revision: number; text: string } | null = null;
  const write = (text: string, previous: number): Promise<number> => {
    if ((held?.revision ?? 0) !== previous) return Promise.reject(new Error('another revision'));
    held = { revision: previous + 1, text };
    return Promise.resolve(held.revision);
  };
  const planId = () => (held === null ? null : (JSON.parse(held.text) as { plan_id: unknown }).plan_id);
  const kv = {
    get: () => {
      const { revision, text } = held ?? { revision: 0, text: '' };
      return Promise.resolve(
        revision === 0 ? null : { operation: 'PUT', revision, json: () => JSON.parse(text) as unknown },
      );
    },
    create: (_key: string, text: string) => write(text, 0),
    update: (_key: string, text: string, previous: number) => write(text, previous),
  };
  return { kv: kv as unknown as KV, planId };
}

it('corrects the calls of both shards, and finishes an interrupted plan in the shard that has it', async () => {
  const [a, b] = shards;
  if (a === undefined || b === undefined) throw new Error('there are two shards');
  await a.landSpans([aCall('t_a1'), aCall('t_a2')]);
  await b.landSpans([aCall('t_b1'), aCall('t_b2'), aCall('t_b3')]);
  const { kv, planId } = aBucket();
  const sent: { plan_id: string; changes: readonly CostChange[] }[] = [];
  let sends = Infinity;
  const corrections: Pick<CorrectionLog, 'untilLanded' | 'send'> = {
    untilLanded: () => Promise.resolve(),
    send: ({ plan_id }, changes) => {
      if (sends-- <= 0) return Promise.reject(new Error('broken off'));
      sent.push({ plan_id, changes });
      return Promise.resolve();
    },
  };
  const run = (usd: number, args?: unknown) => {
    const deps: RepriceDeps = {
      shards: shards.map(({ client }) => ({ clickhouse: client, store: new RepricingStore(client) })),
      log: corrections as CorrectionLog,
      kv: () => Promise.resolve(kv),
      pricesOf: () => Promise.resolve([{ model: MODEL, input_usd_per_mtok: usd, output_usd_per_mtok: usd }]),
      sync: () => Promise.resolve(),
    };
    const signal = AbortSignal.timeout(60_000);
    return createReprice(deps)({ now: SINCE, signal, log: createLogger('test', 'silent'), args });
  };
  const range = { org_id: 'org_a', since: SINCE, until: SINCE + 60_000, model: null };
  const costs = (table: string) =>
    Promise.all(
      shards.map(async ({ database }) => (await database.run(`SELECT toFloat64(sum(cost_usd)) FROM ${table}`)).trim()),
    );
  const tables = ['spans', 'span_texts_recent'];
  expect(await run(2, range)).toEqual({ spans: 5, repriced: 5, unknown: 0, delta_usd: 5, finished: 0 });
  for (const table of tables) expect([table, ...(await costs(table))]).toEqual([table, '4', '6']);
  expect(sent.map(({ changes }) => changes.map(({ trace_id }) => trace_id))).toEqual([
    ['t_a1', 't_a2'],
    ['t_b1', 't_b2', 't_b3'],
  ]);
  expect(new Set(sent.map(({ plan_id }) => plan_id)).size).toBe(2);

  // The plan of the first shard is carried out; that of the second is open when the run breaks off.
  sends = 1;
  await expect(run(3, range)).rejects.toThrow('broken off');
  expect(await costs('spans')).toEqual(['6', '6']);
  expect(planId()).toEqual(expect.any(String));
  sends = Infinity;
  expect(await run(3)).toEqual({ spans: 0, repriced: 0, unknown: 0, delta_usd: 0, finished: 3 });
  for (const table of tables) expect([table, ...(await costs(table))]).toEqual([table, '6', '9']);

  // The plan of the first shard is open; the second shard has none yet.
  sends = 0;
  await expect(run(4, range)).rejects.toThrow('broken off');
  sends = Infinity;
  expect(await run(4, range)).toMatchObject({ spans: 5, repriced: 3, finished: 2 });
  for (const table of tables) expect([table, ...(await costs(table))]).toEqual([table, '8', '12']);
  expect(planId()).toBeNull();
  for (const { client } of shards) expect(await new RepricingStore(client).plans()).toEqual([]);
});
