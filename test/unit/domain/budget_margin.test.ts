// When a limit is too near to be decided by one process's knowledge.
import { expect, test } from 'vitest';
import { nothingUsed } from '../../../pipeline/domain/budgets/budget.ts';
import { burstOf, isNear, isNearAny, type View } from '../../../pipeline/domain/budgets/margin.ts';
import { agentScope, type BudgetRecord, NO_LIMITS } from '../../../schemas/records/budget.ts';

const fresh = { processes: 2, age_ms: 0 };
const LIMIT = 1_000_000;

test('a single process decides everything itself', () => {
  expect(isNear(LIMIT, LIMIT - 1, LIMIT, { processes: 1, age_ms: Infinity })).toBe(false);
});

test('the last tenth of a limit is decided in one place, and more of it the older the knowledge', () => {
  expect(isNear(LIMIT, 899_999, 0, fresh)).toBe(false);
  expect(isNear(LIMIT, 900_000, 0, fresh)).toBe(true);
  expect(isNear(LIMIT, 700_000, 0, { processes: 2, age_ms: 49 })).toBe(false);
  expect(isNear(LIMIT, 700_000, 0, { processes: 2, age_ms: 50 })).toBe(true);
});

test('a process whose knowledge is a quarter of a second old, or missing, decides nothing', () => {
  expect(isNear(LIMIT, 0, 0, { processes: 2, age_ms: 225 })).toBe(true);
  expect(isNear(LIMIT, 0, 0, { processes: 2, age_ms: Infinity })).toBe(true);
});

test('the use that every process may admit at once is kept free', () => {
  expect(isNear(LIMIT, 0, 450_000, fresh)).toBe(true);
  expect(isNear(LIMIT, 0, 449_999, fresh)).toBe(false);
  expect(isNear(LIMIT, 0, 299_999, { processes: 3, age_ms: 0 })).toBe(false);
  expect(isNear(LIMIT, 0, 300_000, { processes: 3, age_ms: 0 })).toBe(true);
});

test('the use admitted at once is 64 requests like this one plus twice the use in flight', () => {
  const underWay = { tokens: 10, storage_bytes: 20, sandbox_micros: 30, cost_pico_usd: 40n };
  const asked = { tokens: 1, storage_bytes: 2, sandbox_micros: 3, cost_pico_usd: 4n };
  expect(burstOf(underWay, asked)).toEqual({
    tokens: 84,
    storage_bytes: 168,
    sandbox_micros: 252,
    cost_pico_usd: 336n,
  });
});

test('64 requests that reach every process at the same instant never reach the limit together unless it is near', () => {
  for (let processes = 2; processes < 6; processes++) {
    for (let tokens = 10; tokens < LIMIT; tokens += 10) {
      const { tokens: burst } = burstOf(nothingUsed(), { ...nothingUsed(), tokens });
      if (!isNear(LIMIT, 0, burst, { processes, age_ms: 0 })) expect(64 * processes * tokens).toBeLessThan(LIMIT);
    }
  }
});

const record: BudgetRecord = {
  org_id: 'org',
  tokens: { soft_limit: 1, hard_limit: 1000 },
  storage_mb: NO_LIMITS,
  sandbox_seconds: NO_LIMITS,
  cost_usd: NO_LIMITS,
  agent_costs: {},
  agents: {
    [agentScope('own')]: { soft_limit: null, hard_limit: 100 },
    [agentScope('free')]: { soft_limit: 5, hard_limit: null },
  },
  alerts: null,
  updated_at: '2026-01-01T00:00:00.000Z',
};
const view: View = { ...fresh, burst: nothingUsed() };
const near = (
  agent_id: string,
  used: Partial<ReturnType<typeof nothingUsed>>,
  agentTokens: number,
  more: Partial<BudgetRecord> = {},
) =>
  isNearAny(
    { ...record, ...more },
    agent_id,
    { ...nothingUsed(), ...used },
    () => ({ ...nothingUsed(), tokens: agentTokens }),
    view,
  );

test("an agent's own limit counts for it, and so does the organization's while it is not reached, as its use brings that nearer", () => {
  expect(near('own', { tokens: 89 }, 89)).toBe(false);
  expect(near('own', { tokens: 90 }, 90)).toBe(true);
  expect(near('own', { tokens: 950 }, 5)).toBe(true);
  expect(near('own', { tokens: 1000 }, 5)).toBe(false);
  expect(near('free', { tokens: 500 }, 400)).toBe(false);
  expect(near('', { tokens: 899 }, 0)).toBe(false);
  expect(near('', { tokens: 900 }, 0)).toBe(true);
});

test('megabytes and seconds of sandboxes have margins of their own', () => {
  const hard = { soft_limit: null, hard_limit: 10 };
  expect(near('', { storage_bytes: 8_999_999 }, 0, { storage_mb: hard })).toBe(false);
  expect(near('', { storage_bytes: 9_000_000 }, 0, { storage_mb: hard })).toBe(true);
  expect(near('', { sandbox_micros: 8_999_999 }, 0, { sandbox_seconds: hard })).toBe(false);
  expect(near('', { sandbox_micros: 9_000_000 }, 0, { sandbox_seconds: hard })).toBe(true);
  const large = { ...nothingUsed(), storage_bytes: 4_500_000 };
  const asked = { ...record, storage_mb: hard };
  expect(isNearAny(asked, '', nothingUsed(), nothingUsed, { ...fresh, burst: large })).toBe(true);
});

test('costs have a margin of their own, for the organization and for an agent', () => {
  const hard = { soft_limit: null, hard_limit: 10 };
  expect(near('', { cost_pico_usd: 8_999_999_999_999n }, 0, { cost_usd: hard })).toBe(false);
  expect(near('', { cost_pico_usd: 9_000_000_000_000n }, 0, { cost_usd: hard })).toBe(true);
  const own = { ...record, agent_costs: { [agentScope('own')]: hard } };
  const spent = (cost_pico_usd: bigint) => () => ({ ...nothingUsed(), cost_pico_usd });
  expect(isNearAny(own, 'own', nothingUsed(), spent(8_999_999_999_999n), view)).toBe(false);
  expect(isNearAny(own, 'own', nothingUsed(), spent(9_000_000_000_000n), view)).toBe(true);
});

test('an organization without hard limits is near none', () => {
  expect(near('', { tokens: 1e15 }, 0, { tokens: { soft_limit: 5, hard_limit: null } })).toBe(false);
});
