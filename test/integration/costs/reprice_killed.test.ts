// Repricing when the worker that runs it is killed: another worker finishes it, and every cost is
// exact.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { picoToDecimal, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { eventually } from '../../support/wait.ts';
import { type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aPricedTenant, everywhere, expectNoLookups, priced } from './a_repricing.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '300', SERVICE_TRACE_IDLE_MS: '300' } });
  api = await service.startApi();
});

afterAll(() => service.close());

test('another worker finishes a repricing exactly when its worker is killed before spans are corrected', async () => {
  const tenant = await aPricedTenant(service, api);
  await tenant.setPrices(priced(1, 1));
  for (let i = 0; i < 12; i++) await tenant.send({ trace_id: `trc_${i % 5}`, input: 100 + i, output: i });
  await tenant.landed(12);
  await tenant.setPrices(priced(2, 2));
  const before = usdToPico((await tenant.costs())['usage'] ?? '');
  // From now on mutations of `spans` wait, while corrections in the ingest log land.
  await service.database.run('SYSTEM STOP MERGES spans');
  const asked = tenant.reprice();
  await eventually(async () => usdToPico((await tenant.costs())['usage'] ?? '') === 2n * before, {
    what: 'usage corrected',
  });
  await eventually(
    async () =>
      (await tenant.one(
        "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table = 'spans' AND NOT is_done AND command LIKE '%joinGet%'",
      )) === '1',
    {
      what: 'the mutation',
    },
  );
  await service.killWorker();
  expect((await asked).status).toBe(502);
  expect(usdToPico((await tenant.costs())['spans'] ?? '')).toBe(before);
  // Prices change again before a worker resumes the job.
  await tenant.setPrices(priced(3, 3));
  await service.database.run('SYSTEM START MERGES spans');
  await service.startWorker();
  await tenant.repriced();
  expect(await tenant.costs()).toEqual(everywhere(picoToDecimal(3n * before)));
  await tenant.expectAgreement();
  await expectNoLookups(service);
  expect(await tenant.repriced()).toMatchObject({ repriced: 0, finished: 0 });
});
