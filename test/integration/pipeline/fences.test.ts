// For which running statements a new owner waits when it raises its fences.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { killStatement, readRunningStatements } from '../../../sql/stores/landing_fences.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';

let store: TestStore;
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());

/** Starts a landing of a worker that runs until it is killed. Returns its id, and what resolves at its end. */
async function aLanding(worker: string): Promise<{ queryId: string; ended: Promise<unknown> }> {
  const queryId = `land-${worker}-spans-${store.database.database}`;
  const ended = store.client
    .execute({
      name: 'endless',
      sql: 'SELECT sleepEachRow(0.1) FROM system.numbers FORMAT Null SETTINGS max_block_size = 1',
      query_id: queryId,
      timeoutMs: 600_000,
    })
    .catch((error: unknown) => error);
  await eventually(async () => (await running()).includes(queryId), { what: 'the statement runs' });
  return { queryId, ended };
}

const running = (): Promise<string[]> => readRunningStatements(store.client, 'land-');

it('ends the statements of former owners, and leaves those of its own that hold no row of the partitions', async () => {
  const fences = new Fences(store.client, 'w1');
  const [own, former] = [await aLanding('w1'), await aLanding('w2')];
  await fences.raise([
    [0, 2],
    [1, 2],
  ]);
  await former.ended;
  expect(await running()).toEqual([own.queryId]);
  await fences.raise([[2, 2]]);
  expect(await running()).toEqual([own.queryId]);
  await killStatement(store.client, own.queryId);
  await own.ended;
});

it('ends the statements of a worker that does not live before those of live workers', async () => {
  const [paused, live] = [await aLanding('w2'), await aLanding('w3')];
  const writers = { formerOf: () => null, isLive: (worker: string) => worker !== 'w2' };
  const raised = new Fences(store.client, 'w1').raise([[3, 2]], writers);
  await paused.ended;
  expect(await running()).toEqual([live.queryId]);
  await killStatement(store.client, live.queryId);
  await Promise.all([raised, live.ended]);
});

it('waits for no statement of workers that cannot hold a row of the partitions', async () => {
  const [former, other] = [await aLanding('w2'), await aLanding('w3')];
  await new Fences(store.client, 'w1').raise([[4, 2]], { formerOf: () => 'w2', isLive: () => true });
  await former.ended;
  expect(await running()).toEqual([other.queryId]);
  await killStatement(store.client, other.queryId);
  await other.ended;
});

it('ends its own statements too when it owned a partition before, because they may hold rows of it', async () => {
  const fences = new Fences(store.client, 'w1');
  await fences.raise([[0, 3]]);
  const own = await aLanding('w1');
  await fences.raise([
    [0, 5],
    [1, 5],
  ]);
  await own.ended;
  expect(await running()).toEqual([]);
});
