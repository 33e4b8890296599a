// Repricing that is interrupted at each of its steps: the next run finishes it, and every cost is
// exact.
import { randomUUID } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { picoToDecimal, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { CorrectionLog, correctionMessages } from '../../../pipeline/jobs/correction_log.ts';
import { JobLeases, type Lease } from '../../../pipeline/jobs/lease.ts';
import { createReprice, type RepriceDeps } from '../../../pipeline/jobs/reprice.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { type CostChange, costCorrectionsCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import { REPRICE } from '../../../schemas/records/repricing.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { RepricingStore } from '../../../sql/stores/repricing.ts';
import { PARTITIONS } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aPricedTenant, DAY_MS, everywhere, expectNoLookups, HOUR_MS, priced } from './a_repricing.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '300', SERVICE_TRACE_IDLE_MS: '300' } });
  api = await service.startApi();
});

afterAll(() => service.close());

test('a repricing is exact wherever a run of it is interrupted', async () => {
  const tenant = await aPricedTenant(service, api);
  const clickhouse = createClickHouse({ url: service.database.url });
  await tenant.setPrices(priced(1, 1));
  for (let i = 0; i < 20; i++)
    await tenant.send({ trace_id: `trc_${i % 7}_${randomUUID()}`, input: 100 + i, output: i });
  await tenant.landed(20);
  const before = usdToPico((await tenant.costs())['spans'] ?? '');
  const broken = (): never => {
    throw new Error('broken off');
  };
  const { log } = api;
  const leases = await JobLeases.open({ log, workerId: 'test', onProblem: () => undefined });
  const store = new RepricingStore(clickhouse);
  /** Returns a log whose client fails after `messages` messages. */
  const logThatSends = (messages: number): Log => {
    let left = messages;
    const publish: Log['js']['publish'] = (...args) => (left-- > 0 ? log.js.publish(...args) : broken());
    return {
      ...log,
      js: new Proxy(log.js, { get: (js, name): unknown => (name === 'publish' ? publish : Reflect.get(js, name)) }),
    };
  };
  /** Runs the job in this process, with one part that fails. */
  const run = async (factor: number, over: Partial<RepriceDeps>): Promise<void> => {
    const deps: RepriceDeps = {
      shards: [{ clickhouse, store }],
      log: new CorrectionLog(log, PARTITIONS),
      kv: () => log.bucket('repricings'),
      pricesOf: () => Promise.resolve([priced(factor, factor)]),
      sync: () => Promise.resolve(),
      ...over,
    };
    const args = { org_id: tenant.org, since: Date.now() - DAY_MS, until: Date.now() + HOUR_MS, model: null };
    let lease: Lease | null = null;
    await eventually(async () => (lease = await leases.take(REPRICE)) !== null, { what: 'the lease' });
    try {
      await createReprice(deps)({
        now: Date.now(),
        signal: AbortSignal.timeout(60_000),
        log: createLogger('test', 'silent'),
        args,
      });
    } finally {
      await (lease as Lease | null)?.release();
    }
  };
  const restart = async (): Promise<void> => {
    await service.killWorker();
    await service.startWorker();
  };
  const correctThen = async (...[plan_id, plan, signal]: Parameters<RepricingStore['correct']>): Promise<void> => {
    await store.correct(plan_id, plan, signal);
    broken();
  };
  const sent: { plan: { plan_id: string; org_id: string }; changes: readonly CostChange[] }[] = [];
  /**
   * Sends all corrections, and kills the worker once the first has landed, before its checkpoint is
   * written.
   */
  const sendThroughKill: CorrectionLog['send'] = async (plan, changes, signal) => {
    sent.push({ plan, changes });
    const was = (await tenant.costs())['usage'];
    const sending = new CorrectionLog(log, PARTITIONS).send(plan, changes, signal);
    await eventually(async () => (await tenant.costs())['usage'] !== was, { what: 'something landed' });
    await restart();
    await sending;
    broken();
  };
  const breaks: Partial<RepriceDeps>[] = [
    // Fails once the plan is written.
    { sync: broken },
    // Fails while the plan is in progress: before the first correction is sent, and after two
    // messages.
    { log: new CorrectionLog(logThatSends(0), PARTITIONS) },
    { log: new CorrectionLog(logThatSends(2), PARTITIONS) },
    { log: Object.assign(new CorrectionLog(log, PARTITIONS), { send: sendThroughKill }) },
    // Fails once spans and texts are corrected, and then with only the deletion of the plan left.
    { shards: [{ clickhouse, store: Object.assign(new RepricingStore(clickhouse), { correct: correctThen }) }] },
    { shards: [{ clickhouse, store: Object.assign(new RepricingStore(clickhouse), { dropPlan: broken }) }] },
  ];
  let factor = 1;
  for (const over of breaks) {
    factor += 1;
    await expect(run(factor, over)).rejects.toThrow('broken off');
    factor += 1;
    await tenant.setPrices(priced(factor, factor));
    await tenant.repriced();
    expect(await tenant.costs()).toEqual(everywhere(picoToDecimal(BigInt(factor) * before)));
    await tenant.expectAgreement();
    await expectNoLookups(service);
  }
  // A worker that was paused sends old corrections again, after the duplicate window of the stream
  // has passed.
  await restart();
  expect(sent).toHaveLength(1);
  for (const { plan, changes } of sent) {
    const messages = correctionMessages(plan, changes, PARTITIONS);
    expect(messages.length).toBeGreaterThan(1);
    for (const { partition, corrections } of [...messages, ...messages]) {
      const head = headers();
      head.set(FINGERPRINT_HEADER, costCorrectionsCodec.fingerprint);
      await log.js.publish(ingestSubject(partition), costCorrectionsCodec.encode(corrections), { headers: head });
    }
  }
  expect(await tenant.repriced()).toMatchObject({ repriced: 0, finished: 0 });
  expect(await tenant.costs()).toEqual(everywhere(picoToDecimal(BigInt(factor) * before)));
  await tenant.expectAgreement();
  leases.close();
  await clickhouse.close();
});
