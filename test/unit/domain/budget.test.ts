// Budgets: periods, status, the limit that blocks an event, and the alerts that are due.
import { describe, expect, test } from 'vitest';
import {
  blockedBy,
  hasHardLimit,
  isBudgeted,
  limitedAgents,
  limitsOfAgent,
  nothingUsed,
  percentageOf,
  statusOf,
  type Used,
} from '../../../pipeline/domain/budgets/budget.ts';
import {
  cumulativeAlerts,
  projectedAlerts,
  projectionOf,
  stateIn,
  sentBy,
  stateAfter,
} from '../../../pipeline/domain/budgets/alerts.ts';
import { eventsOfAlert, mailOfAlert } from '../../../pipeline/domain/budgets/alert_events.ts';
import { MONTHLY, periodAt } from '../../../pipeline/domain/budgets/period.ts';
import {
  agentScope,
  type BudgetRecord,
  budgetRecord,
  type BudgetState,
  NO_LIMITS,
} from '../../../schemas/records/budget.ts';

const DAY = 86_400_000;
const record = (fields: Partial<BudgetRecord> = {}): BudgetRecord => ({
  org_id: 'org_a',
  tokens: NO_LIMITS,
  storage_mb: NO_LIMITS,
  sandbox_seconds: NO_LIMITS,
  cost_usd: NO_LIMITS,
  agents: {},
  agent_costs: {},
  alerts: null,
  updated_at: '2026-01-01T00:00:00.000Z',
  ...fields,
});
const used = (fields: Partial<Used> = {}): Used => ({ ...nothingUsed(), ...fields });
const limit = (soft_limit: number | null, hard_limit: number | null) => ({ soft_limit, hard_limit });

describe('periods', () => {
  test.each([
    ['2026-02-28T23:59:59.999Z', '2026-02-01', '2026-03-01'],
    ['2026-03-01T00:00:00.000Z', '2026-03-01', '2026-04-01'],
    ['2026-12-31T23:59:59.999Z', '2026-12-01', '2027-01-01'],
  ])('%s lies in the month from %s to %s', (at, start, end) => {
    expect(periodAt(MONTHLY, Date.parse(at))).toEqual({
      kind: 'month',
      start: Date.parse(start),
      end: Date.parse(end),
    });
  });
  test.each([
    [4, '2026-03-31T23:59:59.999Z', '2025-04-01', '2026-04-01'],
    [4, '2026-04-01T00:00:00.000Z', '2026-04-01', '2027-04-01'],
    [1, '2026-06-15T00:00:00.000Z', '2026-01-01', '2027-01-01'],
    [12, '2026-11-30T00:00:00.000Z', '2025-12-01', '2026-12-01'],
  ])('a fiscal year from month %i: %s lies in %s to %s', (month, at, start, end) => {
    const rule = { period: 'fiscal_year' as const, fiscal_year_start_month: month };
    expect(periodAt(rule, Date.parse(at))).toEqual({
      kind: 'fiscal_year',
      start: Date.parse(start),
      end: Date.parse(end),
    });
  });
});

test.each([
  [0, limit(null, null), 'ok', 0],
  [79, limit(80, 100), 'ok', 79],
  [80, limit(80, 100), 'soft_exceeded', 80],
  [100, limit(80, 100), 'hard_exceeded', 100],
  [150, limit(null, 100), 'hard_exceeded', 150],
  [40, limit(80, null), 'ok', 50],
  [90, limit(80, null), 'soft_exceeded', 112.5],
  [0, limit(null, 0), 'hard_exceeded', 100],
])('%d of %o is %s, %d %%', (amount, limits, status, percentage) => {
  expect([statusOf(amount, limits), percentageOf(amount, limits)]).toEqual([status, percentage]);
});

describe('what blocks an event', () => {
  const none = nothingUsed;
  test('the first reached hard limit blocks; an unlimited organization blocks nothing', () => {
    expect(blockedBy(record(), '', used({ tokens: 1e12, storage_bytes: 1e12 }), none)).toBeNull();
    const limited = record({ tokens: limit(null, 100), storage_mb: limit(null, 5) });
    expect(blockedBy(limited, '', used({ tokens: 99, storage_bytes: 4_999_999 }), none)).toBeNull();
    expect(blockedBy(limited, '', used({ tokens: 100 }), none)).toEqual({
      scope: 'tokens',
      resource: 'tokens',
      agent_id: null,
      hard_limit: 100,
    });
    expect(blockedBy(limited, 'a', used({ storage_bytes: 5_000_000 }), none)?.resource).toBe('storage_mb');
    expect(
      blockedBy(record({ sandbox_seconds: limit(null, 2) }), '', used({ sandbox_micros: 2_000_000 }), none)?.resource,
    ).toBe('sandbox_seconds');
  });
  test("an agent's own limit replaces the organization's on tokens, and on nothing else", () => {
    const both = record({
      tokens: limit(null, 100),
      storage_mb: limit(null, 5),
      agents: { [agentScope('a')]: limit(null, 10) },
    });
    const usedOf = (agent: string) => used({ tokens: agent === 'a' ? 10 : 1e9 });
    expect(blockedBy(both, 'a', used(), usedOf)).toMatchObject({ scope: 'agent:a', agent_id: 'a', hard_limit: 10 });
    expect(blockedBy(both, 'a', used({ tokens: 500 }), none)).toBeNull();
    expect(blockedBy(both, 'b', used({ tokens: 50 }), usedOf)).toBeNull();
    expect(blockedBy(both, 'b', used({ tokens: 100 }), none)?.agent_id).toBeNull();
    expect(blockedBy(both, 'a', used({ storage_bytes: 6e6 }), none)?.resource).toBe('storage_mb');
    expect(blockedBy(both, 'constructor', used(), () => used({ tokens: 1e9 }))).toBeNull();
  });
  test('a limit in USD blocks from the exact sum on, and one of an agent replaces that of the organization', () => {
    const limited = record({ cost_usd: limit(null, 0.3), agent_costs: { [agentScope('a')]: limit(null, 0.000001) } });
    expect(blockedBy(limited, '', used({ cost_pico_usd: 299_999_999_999n }), none)).toBeNull();
    expect(blockedBy(limited, '', used({ cost_pico_usd: 300_000_000_000n }), none)).toEqual({
      scope: 'cost_usd',
      resource: 'cost_usd',
      agent_id: null,
      hard_limit: 0.3,
    });
    expect(blockedBy(limited, 'a', used({ cost_pico_usd: 10n ** 15n }), none)).toBeNull();
    expect(blockedBy(limited, 'a', used(), () => used({ cost_pico_usd: 1_000_000n }))).toMatchObject({
      scope: 'cost_usd:agent:a',
      agent_id: 'a',
    });
  });
  test('a record from before limits in USD has none', () => {
    const fields = Object.entries(record({ tokens: limit(null, 5) }));
    const older = Object.fromEntries(fields.filter(([name]) => name !== 'cost_usd' && name !== 'agent_costs'));
    expect(budgetRecord.parse(older)).toEqual(record({ tokens: limit(null, 5) }));
  });
  test.each([0, 0.1, 12.5, 0.000000000001, 1e9, null])('accepts %d as a limit in USD', (hard_limit) => {
    expect(budgetRecord.shape.cost_usd.safeParse({ soft_limit: null, hard_limit }).success).toBe(true);
  });
  test.each([-1, 1e-13, 0.1234567890123, 1e9 + 1, '5', NaN])('rejects %s as a limit in USD', (hard_limit) => {
    expect(budgetRecord.shape.cost_usd.safeParse({ soft_limit: null, hard_limit }).success).toBe(false);
  });
  test('a record states what is limited, and what can reject', () => {
    expect(
      [record(), record({ tokens: limit(5, null) }), record({ agents: { [agentScope('a')]: limit(null, 5) } })].map(
        isBudgeted,
      ),
    ).toEqual([false, true, true]);
    expect(
      [record({ tokens: limit(5, null) }), record({ agents: { [agentScope('a')]: limit(null, 5) } })].map(hasHardLimit),
    ).toEqual([false, true]);
  });
});

describe('alerts', () => {
  const period = periodAt(MONTHLY, Date.parse('2026-06-11T00:00:00Z'));
  const alerts = {
    channels: ['email' as const],
    thresholds: [
      { resource: 'tokens' as const, percent: 50, severity: 'info' as const },
      { resource: 'tokens' as const, percent: 90, severity: 'critical' as const },
    ],
    webhook_url: null,
    sealed_secret: null,
  };
  const now = (tokens: number, at = '2026-06-11T00:00:00Z', more: Partial<BudgetRecord> = {}) => ({
    record: record({ tokens: limit(80, 100), alerts, ...more }),
    used: used({ tokens }),
    agentUsed: (agent: string) => used({ tokens: agent === 'a' ? 10 : 0 }),
    period,
    now: Date.parse(at),
  });
  const keys = (due: { key: string }[]) => due.map(({ key }) => key);

  test('each threshold and limit causes one alert', () => {
    expect(keys(cumulativeAlerts(now(49), new Set()))).toEqual([]);
    expect(keys(cumulativeAlerts(now(50), new Set()))).toEqual(['cumulative:tokens:50:info']);
    const crossed = cumulativeAlerts(now(100), new Set(['cumulative:tokens:50']));
    expect(keys(crossed)).toEqual(['soft:tokens:80', 'hard:tokens:100', 'cumulative:tokens:90:critical']);
    expect(crossed.map(({ percent, severity }) => [percent, severity])).toEqual([
      [80, 'warning'],
      [100, 'critical'],
      [90, 'critical'],
    ]);
    expect(cumulativeAlerts(now(100), new Set([...keys(crossed), 'cumulative:tokens:50']))).toEqual([]);
  });
  test('two thresholds of one percentage and two severities both fire, each once, under ids of their own', () => {
    const both = (['info', 'critical', 'info'] as const).map((severity) => ({
      resource: 'tokens' as const,
      percent: 50,
      severity,
    }));
    const budget = now(60, undefined, { alerts: { ...alerts, thresholds: both } });
    const due = cumulativeAlerts(budget, new Set());
    expect(due.map(({ percent, severity }) => [percent, severity])).toEqual([
      [50, 'info'],
      [50, 'critical'],
    ]);
    expect(new Set(due.flatMap((alert) => eventsOfAlert(alert, place)).map(({ event_id }) => event_id))).toHaveLength(
      4,
    );
    expect(new Set(due.map((alert) => mailOfAlert(alert, place).mail_id))).toHaveLength(2);
    expect(keys(cumulativeAlerts(budget, new Set(['cumulative:tokens:50:info'])))).toEqual([
      'cumulative:tokens:50:critical',
    ]);
    expect(cumulativeAlerts(budget, new Set(keys(due)))).toEqual([]);
    expect(keys(projectedAlerts(budget, new Set()))).toEqual([
      'projected:tokens:50:info',
      'projected:tokens:50:critical',
    ]);
    expect(projectedAlerts(budget, new Set(keys(due)))).toEqual([]);
  });
  test('a threshold that an older version stored without its severity does not fire again in the period', () => {
    const severities = (['info', 'critical'] as const).map((severity) => ({
      resource: 'tokens' as const,
      percent: 50,
      severity,
    }));
    const budget = now(60, undefined, { alerts: { ...alerts, thresholds: severities } });
    expect(cumulativeAlerts(budget, new Set(['cumulative:tokens:50']))).toEqual([]);
    expect(keys(cumulativeAlerts(budget, new Set(['cumulative:tokens:5'])))).toHaveLength(2);
  });
  const place = { org_id: 'org_a', org_name: 'A', period_start: '2026-06-01T00:00:00.000Z' };
  const events = (tokens: number, more: Partial<BudgetRecord> = {}, told: string[] = []) =>
    cumulativeAlerts(now(tokens, undefined, more), new Set(told)).flatMap((alert) => eventsOfAlert(alert, place));
  const names = (tokens: number, more?: Partial<BudgetRecord>, told?: string[]) =>
    events(tokens, more, told).map(({ event, payload }) => [event, payload['percent']]);
  const at = (percent: number, resource: 'tokens' | 'storage_mb' = 'tokens') => ({
    alerts: { ...alerts, thresholds: [{ resource, percent, severity: 'critical' as const }] },
  });
  const breach = (percent: number) => [
    ['cost.threshold_breach', percent],
    ['budget.threshold_breach', percent],
  ];

  test('a hard limit is reported as such, at no percentage', () => {
    expect(names(100, { alerts: null })).toEqual([...breach(80), ['budget.hard_exceeded', undefined]]);
    expect(events(100, { alerts: null }).at(-1)?.payload).toEqual({
      event: 'budget.hard_exceeded',
      org_id: 'org_a',
      resource: 'tokens',
      used: 100,
      hard_limit: 100,
      period_start: place.period_start,
    });
  });
  test('a threshold that equals the soft limit is reported once, with its own severity, and both are recorded', () => {
    expect(names(80, at(80))).toEqual(breach(80));
    expect(events(80, at(80)).map(({ payload }) => payload['severity'])).toEqual(['critical', 'critical']);
    expect(sentBy(cumulativeAlerts(now(80, undefined, at(80)), new Set()), 0, '0').keys).toEqual([
      'soft:tokens:80',
      'cumulative:tokens:80:critical',
    ]);
    // A quotient that differs slightly from the configured percentage.
    const third = { ...at(33.3), tokens: limit(333, 1000) };
    expect(names(333, third)).toEqual(breach(33.3));
    expect(names(332, third)).toEqual([]);
  });
  test('a soft limit is reported where no threshold reports it', () => {
    expect(names(80, at(79.9))).toEqual([...breach(80), ...breach(79.9)]);
    expect(names(80, at(80, 'storage_mb'))).toEqual(breach(80));
    // The threshold was reported in this period, before the limits were changed.
    expect(names(160, { ...at(80), tokens: limit(160, 200) }, ['cumulative:tokens:80'])).toEqual(breach(80));
    // An agent's limit has no thresholds.
    const agent = { ...at(80), agents: { [agentScope('a')]: limit(8, 20) } };
    expect(events(80, agent).map(({ payload }) => payload['agent_id'])).toEqual([undefined, undefined, 'a', 'a']);
  });
  test('a changed limit can be crossed again; an agent has its own', () => {
    const moved = { tokens: limit(null, 60), agents: { [agentScope('a')]: limit(null, 10) } };
    expect(keys(cumulativeAlerts(now(60, undefined, moved), new Set(['hard:tokens:50'])))).toEqual([
      'hard:tokens:60',
      'cumulative:tokens:50:info',
      'cumulative:tokens:90:critical',
      'hard:agent:a:10',
    ]);
  });
  test('the run rate is taken over one day at least', () => {
    expect(projectionOf(10, period, period.start + 3_600_000)).toBe(300);
    expect(projectionOf(10, period, period.start + 10 * DAY)).toBe(30);
  });
  test('a projected breach is reported before it happens, and not after', () => {
    // 20 in 10 of 30 days: 60 at the end.
    expect(projectedAlerts(now(20), new Set())).toMatchObject([
      { key: 'projected:tokens:50:info', cause: 'projected', used: 20, projected: 60, percent: 50 },
    ]);
    for (const key of [
      'projected:tokens:50:info',
      'cumulative:tokens:50:info',
      'projected:tokens:50',
      'cumulative:tokens:50',
    ])
      expect(projectedAlerts(now(20), new Set([key]))).toEqual([]);
  });
  test('sent alerts are kept for their period, beside those of others, with the cost at a crossing', () => {
    const told = sentBy(cumulativeAlerts(now(100), new Set()), Date.parse('2026-06-11T00:00:00Z'), '1.5');
    const june = { org_id: 'org_a', periodStart: period.start };
    const first = stateAfter(null, { ...june, told });
    expect(stateIn(first, period.start)).toEqual({
      crossings: { tokens: { at: '2026-06-11T00:00:00.000Z', cost_usd: '1.5', hard_limit: 100 } },
      told: ['soft:tokens:80', 'hard:tokens:100', 'cumulative:tokens:50:info', 'cumulative:tokens:90:critical'],
    });
    const more = stateAfter(first, {
      ...june,
      told: { keys: ['projected:tokens:50', 'hard:tokens:100'], crossed: {} },
    });
    expect(stateIn(more, period.start)?.told.slice(4)).toEqual(['projected:tokens:50']);
    expect(stateIn(more, period.start)?.crossings).toEqual(stateIn(first, period.start)?.crossings);
    // A fiscal year chosen by a policy began earlier; evaluating it takes nothing from the month.
    const year = stateAfter(more, {
      org_id: 'org_a',
      periodStart: Date.UTC(2026, 0),
      told: { keys: ['x'], crossed: {} },
    });
    expect(stateIn(year, period.start)).toEqual(stateIn(more, period.start));
    expect(stateIn(year, Date.UTC(2026, 0))).toEqual({ crossings: {}, told: ['x'] });
    expect(stateIn(year, Date.UTC(2026, 6))).toBeNull();
  });
  test('the number of remembered periods is bounded', () => {
    let state: BudgetState | null = null;
    for (let month = 0; month < 40; month++)
      state = stateAfter(state, {
        org_id: 'org_a',
        periodStart: Date.UTC(2026, month),
        told: { keys: ['x'], crossed: {} },
      });
    expect(Object.keys(state?.periods ?? {})).toHaveLength(6);
    expect(stateIn(state, Date.UTC(2026, 39))).not.toBeNull();
  });
});

test.each(['__proto__', 'constructor', 'toString', 'a:b', '\u{1f600} ß', 'ключ'])(
  'an agent named %s has limits of its own, also from KV',
  (agent_id) => {
    const stored = JSON.stringify(record({ agents: Object.fromEntries([[agentScope(agent_id), limit(null, 10)]]) }));
    const loaded = budgetRecord.parse(JSON.parse(stored));
    expect(limitedAgents(loaded)).toEqual([agent_id]);
    expect(limitsOfAgent(loaded, agent_id)).toEqual(limit(null, 10));
    expect(blockedBy(loaded, agent_id, used(), (asked) => used({ tokens: asked === agent_id ? 10 : 0 }))).toMatchObject(
      { agent_id },
    );
    for (const other of ['', 'other', 'valueOf', '__proto__ ']) expect(limitsOfAgent(loaded, other)).toBeNull();
  },
);
