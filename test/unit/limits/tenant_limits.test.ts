// The limits of tenants on a simulated clock: plans, headers, separate buckets, changes of plan,
// eviction, and several processes that report to each other.
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { limitsOfTenant, type PlanLimits, type PlannedOrg, PLANS } from '../../../api/admission/rate/plans.ts';
import { BUCKETS_MAX, TenantLimits } from '../../../api/admission/rate/tenant_limits.ts';
import type { RateKind } from '../../../api/http/rate_limit.ts';

let now: number;
let orgs: Map<string, PlannedOrg>;
let refused: RateKind[];

const someLimits = (appPerMinute = 500): TenantLimits =>
  new TenantLimits({
    limitsOf: limitsOfTenant({ get: (org_id) => orgs.get(org_id) ?? null }),
    appPerMinute,
    now: () => now,
    onReject: (kind) => refused.push(kind),
  });

beforeEach(() => {
  now = 1_000_000;
  refused = [];
  orgs = new Map<string, PlannedOrg>([
    ['org_free', { plan_name: 'free', rate_limits: null }],
    ['org_starter', { plan_name: 'starter', rate_limits: null }],
    ['org_pro', { plan_name: 'pro', rate_limits: null }],
    ['org_custom', { plan_name: 'enterprise', rate_limits: { ingest_per_minute: 120, api_per_minute: 240, burst: 4 } }],
    ['org_open', { plan_name: 'enterprise', rate_limits: null }],
  ]);
});

function grantedOf(limits: TenantLimits, kind: RateKind, tenant: string, tries: number): number {
  let granted = 0;
  for (let i = 0; i < tries; i++) if (limits.take(kind, tenant, 1).allowed) granted++;
  return granted;
}

describe('plans', () => {
  test.each([
    ['org_free', 30, 60, 60],
    ['org_starter', 60, 300, 300],
    ['org_pro', 200, 1500, 1500],
    ['org_custom', 4, 120, 240],
    ['person:someone', 30, 60, 60],
    ['portal:digest_of_someone', 300, 1200, 1200],
    ['org_nobody_knows', 30, 60, 60],
  ])('%s: %i at once, then %i ingest and %i API requests a minute', (tenant, burst, ingest, api) => {
    const limits = someLimits();
    for (const [kind, perMinute] of [
      ['ingest', ingest],
      ['api', api],
    ] as const) {
      expect(grantedOf(limits, kind, tenant, 10_000)).toBe(burst);
      expect(limits.take(kind, tenant, 1).headers['RateLimit-Limit']).toBe(String(perMinute));
      let granted = 0;
      const began = now;
      for (; now < began + 60_000; granted += grantedOf(limits, kind, tenant, 3)) now += 10;
      expect(granted).toBe(perMinute);
    }
  });

  test('an enterprise organization without limits of its own has none on requests, and gets no headers; app events have theirs', () => {
    const limits = someLimits();
    for (const kind of ['ingest', 'api'] as const)
      for (let i = 0; i < 1000; i++)
        expect(limits.take(kind, 'org_open', 1000)).toEqual({ allowed: true, headers: {} });
    expect(limits.size).toBe(0);
    expect(grantedOf(limits, 'app', 'org_open', 1000)).toBe(500);
  });

  test('ingest, API and app are charged separately', () => {
    const limits = someLimits();
    expect(grantedOf(limits, 'ingest', 'org_free', 100)).toBe(30);
    expect(grantedOf(limits, 'api', 'org_free', 100)).toBe(30);
    expect(grantedOf(limits, 'app', 'org_free', 1000)).toBe(500);
    expect(grantedOf(limits, 'ingest', 'org_pro', 1000)).toBe(200);
    expect(new Set(refused)).toEqual(new Set(['ingest', 'api', 'app']));
  });

  test('app counts events, a minute of them at once', () => {
    const limits = someLimits();
    expect([limits.take('app', 'org_free', 400).allowed, limits.take('app', 'org_free', 101).allowed]).toEqual([
      true,
      false,
    ]);
    expect(limits.take('app', 'org_free', 100).headers).toEqual({
      'RateLimit-Limit': '500',
      'RateLimit-Remaining': '0',
      'RateLimit-Reset': '60',
    });
  });

  test('a batch larger than a minute of app events passes when the bucket is full, and is paid for', () => {
    const limits = someLimits();
    expect(limits.take('app', 'org_free', 1000).allowed).toBe(true);
    expect(limits.take('app', 'org_free', 1)).toEqual({
      allowed: false,
      headers: { 'RateLimit-Limit': '500', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '120', 'Retry-After': '61' },
    });
    now += 61_000;
    expect(limits.take('app', 'org_free', 1).allowed).toBe(true);
  });
});

describe('headers', () => {
  test('rate headers give the remainder and when the bucket is full again, in whole numbers', () => {
    const limits = someLimits();
    expect(limits.take('api', 'org_free', 1).headers).toEqual({
      'RateLimit-Limit': '60',
      'RateLimit-Remaining': '29',
      'RateLimit-Reset': '1',
    });
    now += 400;
    expect(limits.take('api', 'org_free', 1).headers).toMatchObject({
      'RateLimit-Remaining': '28',
      'RateLimit-Reset': '2',
    });
  });

  test('headers of a rejection say exactly when this cost would pass', () => {
    const limits = someLimits();
    grantedOf(limits, 'ingest', 'org_starter', 60);
    const { allowed, headers } = limits.take('ingest', 'org_starter', 1);
    expect(allowed).toBe(false);
    expect(headers).toEqual({
      'RateLimit-Limit': '300',
      'RateLimit-Remaining': '0',
      'RateLimit-Reset': '12',
      'Retry-After': '1',
    });
    now += 999 * Number(headers['Retry-After']);
    // A token takes 200 ms; whole seconds are the smallest unit of the header.
    now += Number(headers['Retry-After']);
    expect(limits.take('ingest', 'org_starter', 1).allowed).toBe(true);
  });

  test('a rejected request costs nothing', () => {
    const limits = someLimits();
    grantedOf(limits, 'api', 'org_free', 30);
    for (let i = 0; i < 1000; i++) limits.take('api', 'org_free', 1);
    now += 1000;
    expect([limits.take('api', 'org_free', 1).allowed, limits.take('api', 'org_free', 1).allowed]).toEqual([
      true,
      false,
    ]);
  });
});

describe('a change of plan', () => {
  test('a change of plan applies to the next request, up and down and to no limit at all', () => {
    const limits = someLimits();
    expect(grantedOf(limits, 'api', 'org_free', 100)).toBe(30);
    orgs.set('org_free', { plan_name: 'pro', rate_limits: null });
    expect(limits.take('api', 'org_free', 1)).toMatchObject({
      allowed: true,
      headers: { 'RateLimit-Limit': '1500', 'RateLimit-Remaining': '169' },
    });
    orgs.set('org_free', { plan_name: 'free', rate_limits: null });
    expect(limits.take('api', 'org_free', 1).headers).toMatchObject({
      'RateLimit-Limit': '60',
      'RateLimit-Remaining': '29',
    });
    orgs.set('org_free', { plan_name: 'enterprise', rate_limits: null });
    expect(limits.take('api', 'org_free', 1).headers).toEqual({});
  });
});

describe('memory', () => {
  test('full buckets and those of unlimited tenants are dropped, others are kept', () => {
    const limits = someLimits();
    for (const org of ['org_free', 'org_starter', 'org_pro']) limits.take('api', org, 1);
    grantedOf(limits, 'ingest', 'org_free', 30);
    now += 1000;
    orgs.set('org_free', { plan_name: 'free', rate_limits: null });
    limits.sweep();
    expect(limits.size).toBe(1);
    expect(limits.take('ingest', 'org_free', 2).allowed).toBe(false);
    orgs.set('org_free', { plan_name: 'enterprise', rate_limits: null });
    limits.sweep();
    expect(limits.size).toBe(0);
  });

  test('memory is bounded, whatever the number of tenants', () => {
    const limits = someLimits();
    for (let i = 0; i < BUCKETS_MAX + 10; i++) limits.take('api', `person:${i}`, 1);
    expect(limits.size).toBe(BUCKETS_MAX);
    expect(limits.take('api', `person:${BUCKETS_MAX + 9}`, 1).headers['RateLimit-Remaining']).toBe('28');
    expect(limits.takeSpent(Infinity)).toHaveLength(BUCKETS_MAX + 10);
  });
});

describe('several processes', () => {
  const tell = (from: TenantLimits, to: readonly TenantLimits[]) => {
    const spent = from.takeSpent(1000);
    for (const other of to) other.debit(spent);
  };

  test('grants are reported once, together, and nothing else is', () => {
    const limits = someLimits();
    let called = 0;
    limits.onSpent(() => called++);
    grantedOf(limits, 'api', 'org_free', 40);
    limits.take('app', 'org_free', 7);
    limits.take('api', 'org_open', 1);
    expect(called).toBe(1);
    expect(limits.takeSpent(1)).toEqual([{ kind: 'api', tenant: 'org_free', tokens: 30 }]);
    expect(limits.takeSpent(1)).toEqual([{ kind: 'app', tenant: 'org_free', tokens: 7 }]);
    expect(limits.takeSpent(1)).toEqual([]);
    limits.take('app', 'org_free', 1);
    expect(called).toBe(2);
  });

  test('grants of other processes are deducted here too', () => {
    const [one, two] = [someLimits(), someLimits()];
    grantedOf(one, 'api', 'org_free', 25);
    tell(one, [two]);
    expect(grantedOf(two, 'api', 'org_free', 100)).toBe(5);
    expect(two.take('api', 'org_open', 1).headers).toEqual({});
  });

  test('a simultaneous burst on all processes exceeds the limit by one capacity for each further process, and its debt repays it', () => {
    const all = [someLimits(), someLimits(), someLimits()];
    let granted = all.reduce((sum, limits) => sum + grantedOf(limits, 'api', 'org_starter', 1000), 0);
    expect(granted).toBe(3 * 60);
    for (const limits of all)
      tell(
        limits,
        all.filter((other) => other !== limits),
      );
    // 120 too many at 5 a second: nothing for 24 s.
    const began = now;
    const minute = () => {
      now += 50;
      for (const limits of all) {
        granted += grantedOf(limits, 'api', 'org_starter', 10);
        tell(
          limits,
          all.filter((other) => other !== limits),
        );
      }
    };
    while (now < began + 24_000) minute();
    expect(granted).toBe(3 * 60);
    while (now < began + 60_000) minute();
    expect(granted).toBe(60 + 300);
  });

  test('a process that has just started takes over what the others know, and no more than that', () => {
    const [one, fresh] = [someLimits(), someLimits()];
    grantedOf(one, 'ingest', 'org_pro', 150);
    limitsTake(one, 'app', 1000);
    one.take('api', 'org_free', 1);
    now += 1000;
    const state = one.state(100);
    expect(state.map(({ kind, tenant }) => [kind, tenant])).toEqual([
      ['ingest', 'org_pro'],
      ['app', 'org_pro'],
    ]);
    expect(one.state(1)).toHaveLength(1);
    fresh.adopt(state);
    expect(grantedOf(fresh, 'ingest', 'org_pro', 1000)).toBe(grantedOf(one, 'ingest', 'org_pro', 1000));
    expect(fresh.take('app', 'org_pro', 1).headers).toEqual(one.take('app', 'org_pro', 1).headers);
    expect(grantedOf(fresh, 'api', 'org_free', 1000)).toBe(30);
  });

  const limitsTake = (limits: TenantLimits, kind: RateKind, cost: number) => limits.take(kind, 'org_pro', cost);
});

test('over any requests to several processes that report at any times, the excess is what was not reported yet', () => {
  const rate: PlanLimits = PLANS.starter;
  const step = fc.record({
    process: fc.nat({ max: 2 }),
    wait_ms: fc.nat({ max: 400 }),
    tell: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (takes) => {
      const all = [someLimits(), someLimits(), someLimits()];
      const began = now;
      let granted = 0;
      const untold = [0, 0, 0];
      // The most that was granted and unreported at once: the excess that the processes could not
      // know of.
      let untoldMost = 0;
      for (const { process, wait_ms, tell } of takes) {
        now += wait_ms;
        const limits = all[process];
        if (limits?.take('api', 'org_starter', 1).allowed === true) {
          granted++;
          untold[process] = (untold[process] ?? 0) + 1;
        }
        untoldMost = Math.max(
          untoldMost,
          untold.reduce((sum, count) => sum + count, 0),
        );
        if (tell && limits !== undefined) {
          const spent = limits.takeSpent(10);
          for (const other of all) if (other !== limits) other.debit(spent);
          untold[process] = 0;
        }
        expect(granted).toBeLessThanOrEqual(rate.burst + (rate.api_per_minute * (now - began)) / 60_000 + untoldMost);
      }
    }),
  );
});
