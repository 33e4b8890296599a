// The budget check of ingest rejects the call after the one that crossed a hard limit, however many
// arrive at once.
import { expect, test } from 'vitest';
import { BudgetGate, type GateDeps } from '../../../api/admission/budget/gate.ts';
import { limitedAgents } from '../../../pipeline/domain/budgets/budget.ts';
import { errorOf } from '../../../api/admission/decision.ts';
import type { ApiError } from '../../../api/http/errors.ts';
import { type AskedUse, type Reservation, UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { agentScope, type BudgetRecord, type PeriodState, unlimited } from '../../../schemas/records/budget.ts';

const ORG = 'org_a';
const PERIOD = { start: 0, end: 1_000_000 };
const use = (tokens: number, agent_id = '', usd = 0n): AskedUse => ({
  tokens,
  storage_bytes: 100,
  sandbox_micros: 0,
  cost_pico_usd: usd * 1_000_000_000_000n,
  agent_id,
  partition: 0,
  hour: 0,
});

const landed = (landed_through: number) => ({ partition: 0, epoch: 1, landed_through, after: 0, log_seq: 0, rows: [] });

function aGate(record: Partial<BudgetRecord>, more: { overage?: number; state?: PeriodState; settled?: boolean } = {}) {
  const ledger = new UsageLedger();
  const whole = { ...unlimited(ORG), ...record };
  const scope = { from: PERIOD.start, until: PERIOD.end, agents: new Set(limitedAgents(whole)) };
  ledger.landed(landed(0));
  ledger.open(ORG, scope);
  ledger.beginRead(ORG);
  if (more.settled !== false) ledger.endRead(ORG, scope, [], 0);
  const deps: GateDeps = {
    budgets: { get: () => whole, state: () => more.state ?? null },
    ledger,
    periodOf: () => PERIOD,
    overageUsdOf: () => more.overage ?? null,
    now: () => 400_500,
    onCrossing: () => undefined,
  };
  return { gate: new BudgetGate(deps), ledger };
}

/** Reserves uses that have to be admitted. */
function admitted(gate: BudgetGate, uses: readonly AskedUse[]): Reservation {
  const decision = gate.admit(ORG, uses);
  if (decision.kind === 'reject') throw new Error(`rejected: ${decision.detail}`);
  return decision.use;
}

/** Returns the error for uses that have to be rejected. */
function rejection(gate: BudgetGate, uses: readonly AskedUse[]): ApiError {
  const decision = gate.admit(ORG, uses);
  if (decision.kind === 'reject') return errorOf(decision);
  throw new Error('it was admitted');
}

const hard = (hard_limit: number) => ({ soft_limit: null, hard_limit });

test('of 64 concurrent requests, the one that reaches the limit is the last', () => {
  const { gate, ledger } = aGate({ tokens: hard(1000) });
  let count = 0;
  for (let i = 0; i < 64; i++) {
    const decision = gate.admit(ORG, [use(30)]);
    if (decision.kind === 'admit') count++;
    else expect(decision.code).toBe('rate_limited');
  }
  expect([count, ledger.used(ORG).tokens]).toEqual([34, 1020]);
});

test('the rejection says which limit is used up and when it starts over', () => {
  const { gate } = aGate({ tokens: hard(10) });
  admitted(gate, [use(10)]);
  const error = rejection(gate, [use(1)]);
  expect(error.status).toBe(429);
  expect(error.detail).toContain('tokens (10)');
  expect(error.headers).toEqual({ 'Retry-After': '600', 'X-Quota-Tokens-Status': 'hard_exceeded' });
  const storage = aGate({ storage_mb: hard(0) });
  expect(rejection(storage.gate, [use(1)]).headers).toMatchObject({
    'X-Quota-Storage-Mb-Status': 'hard_exceeded',
  });
});

test('unpublished and cancelled use is released', () => {
  const { gate, ledger } = aGate({ tokens: hard(10) });
  admitted(gate, [use(10)]).cancel();
  const second = admitted(gate, [use(10)]);
  rejection(gate, [use(1)]);
  second.confirm(new Map([[0, 5]]));
  ledger.landed(landed(5));
  admitted(gate, [use(1)]);
});

test("a batch with one blocked agent's event is rejected as a whole; other agents continue", () => {
  const { gate, ledger } = aGate({ tokens: hard(1000), agents: { [agentScope('small')]: hard(5) } });
  admitted(gate, [use(5, 'small')]);
  expect(rejection(gate, [use(1, 'big'), use(1, 'small')]).detail).toContain('agent small');
  expect(ledger.used(ORG).tokens).toBe(5);
  admitted(gate, [use(1, 'big')]);
});

test('an overage budget admits use until its cost is reached; 0 rejects with 402 at once', () => {
  const { gate } = aGate({ tokens: hard(10) }, { overage: 5 });
  admitted(gate, [use(10, '', 100n)]);
  admitted(gate, [use(10, '', 3n)]);
  admitted(gate, [use(10, '', 3n)]);
  expect(rejection(gate, [use(1, '', 1n)]).status).toBe(402);
  const none = aGate({ tokens: hard(10) }, { overage: 0 });
  admitted(none.gate, [use(10)]);
  expect(rejection(none.gate, [use(1)]).code).toBe('payment_required');
});

test('while use is unknown, a limit recorded as reached rejects', () => {
  const state: PeriodState = {
    crossings: { tokens: { at: new Date(5).toISOString(), cost_usd: '1', hard_limit: 10 } },
    told: [],
  };
  const unknown = { state, settled: false };
  expect(rejection(aGate({ tokens: hard(10) }, unknown).gate, [use(1)]).code).toBe('rate_limited');
  admitted(aGate({ tokens: hard(20) }, unknown).gate, [use(1)]);
  admitted(aGate({ tokens: hard(10) }, { state }).gate, [use(1)]);
});

test('an organization without a hard limit is not checked', () => {
  expect(aGate({ tokens: { soft_limit: 5, hard_limit: null } }).gate.guards(ORG)).toBe(false);
  expect(aGate({ agents: { [agentScope('a')]: hard(5) } }).gate.guards(ORG)).toBe(true);
});
