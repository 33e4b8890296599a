// When a tenant has filled its share of the idempotency answers, by the store's count and what this
// process adds.
import { expect, test } from 'vitest';
import { type TenantUse, TenantShares } from '../../../api/http/keyed_shares.ts';

const TTL_MS = 86_400_000;
const NOTHING: TenantUse = { bytes: 0, records: 0, oldest_ms: null };

/**
 * Returns shares of 100 records or 100,000 bytes over a store that holds `use`, with a clock that
 * the test moves.
 */
function shares(use: () => TenantUse | Error) {
  const state = { now: 1_000_000, measured: 0, problems: 0 };
  const made = new TenantShares({
    bytesMax: 100_000,
    recordsMax: 100,
    ttlMs: TTL_MS,
    measure: () => {
      state.measured += 1;
      const found = use();
      return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
    },
    now: () => state.now,
    onProblem: () => {
      state.problems += 1;
    },
  });
  return { made, state };
}

test('a tenant is full by bytes or by records, until its oldest record expires', async () => {
  for (const use of [
    { bytes: 90_000, records: 50, oldest_ms: 400_000 },
    { bytes: 5_000, records: 100, oldest_ms: 400_000 },
  ]) {
    const { made } = shares(() => use);
    expect(await made.fullUntil('a')).toBe(400_000 + TTL_MS);
  }
  const { made } = shares(() => ({ bytes: 70_000, records: 99, oldest_ms: 400_000 }));
  expect(await made.fullUntil('a')).toBeNull();
});

test('records that this process adds count at once, without asking the store', async () => {
  const { made, state } = shares(() => NOTHING);
  expect(await made.fullUntil('a')).toBeNull();
  for (let n = 0; n < 99; n++) made.added('a', { bytes: 10, records: 1 });
  expect([await made.fullUntil('a'), await made.fullUntil('b')]).toEqual([null, null]);
  made.added('a', { bytes: 10, records: 1 });
  expect([await made.fullUntil('a'), await made.fullUntil('b')]).toEqual([state.now + TTL_MS, null]);
  expect(state.measured).toBe(2);
});

test('a rejection counts again once the last count is some seconds old, so that expired records make room', async () => {
  let use: TenantUse = { bytes: 100_000, records: 1, oldest_ms: 1 };
  const { made, state } = shares(() => use);
  expect(await made.fullUntil('a')).not.toBeNull();
  use = NOTHING;
  expect(await made.fullUntil('a')).not.toBeNull();
  state.now += 5_000;
  expect(await made.fullUntil('a')).toBeNull();
});

test('records that other processes add are found within seconds above a quarter of the share', async () => {
  let use: TenantUse = { bytes: 30_000, records: 1, oldest_ms: 1 };
  const { made, state } = shares(() => use);
  expect(await made.fullUntil('a')).toBeNull();
  use = { bytes: 100_000, records: 1, oldest_ms: 1 };
  state.now += 5_000;
  // The count runs beside this request; the next one is rejected.
  await made.fullUntil('a');
  await Promise.resolve();
  expect(await made.fullUntil('a')).not.toBeNull();
});

test('a store that cannot be counted has room, and is counted later', async () => {
  let use: TenantUse | Error = new Error('away');
  const { made, state } = shares(() => use);
  expect([await made.fullUntil('a'), state.problems]).toEqual([null, 1]);
  use = { bytes: 200_000, records: 1, oldest_ms: 1 };
  state.now += 300_000;
  await made.fullUntil('a');
  await Promise.resolve();
  expect(await made.fullUntil('a')).not.toBeNull();
});
