import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startOfDay } from '../../../pipeline/domain/time/days.ts';
import { MONTHLY, periodAt, type PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import {
  cutoffDay,
  cutoffRanges,
  RETAINED_KINDS,
  retentionDays,
  newestCutoff,
  NEVER,
  type OrgPolicy,
} from '../../../pipeline/domain/traces/retention.ts';
import {
  changedRetention,
  DEFAULT_RETENTION,
  parseRetention,
  retentionChange,
  type RetentionPolicy,
  retentionProblem,
} from '../../../schemas/records/retention.ts';

const days = fc.integer({ min: 1, max: 4000 });
const policies: fc.Arbitrary<RetentionPolicy> = fc
  .record({
    days: fc.tuple(days, days, days),
    forever: fc.boolean(),
    scores: fc.option(days),
    usage: fc.option(days),
    audit: fc.option(days),
  })
  .map(({ days: given, forever, scores, usage, audit }) => {
    const [full = 1, metadata = 1, deletion = 1] = given.toSorted((a, b) => a - b);
    return {
      telemetry_events: {
        full_prompt_response_days: full,
        metadata_only_days: metadata,
        delete_after_days: forever ? null : deletion,
      },
      judge_scores: { delete_after_days: scores },
      usage_events: { delete_after_days: usage },
      audit_log: { delete_after_days: audit },
    };
  });
const instant = fc.integer({ min: startOfDay(10_000), max: startOfDay(40_000) });

describe('what is due', () => {
  it("data is due when it began its retention's whole days ago, and nothing younger", () => {
    fc.assert(
      fc.property(policies, fc.constantFrom(...RETAINED_KINDS), instant, (policy, kept, now) => {
        const kept_days = retentionDays(policy, kept);
        const cutoff = cutoffDay(policy, kept, now, MONTHLY);
        if (kept_days === null) expect(cutoff).toBe(NEVER);
        else {
          expect(startOfDay(cutoff) + kept_days * 86_400_000).toBeLessThanOrEqual(now);
          const next = startOfDay(cutoff + 1);
          const isOfPeriod = kept === 'usage_events' && next === periodAt(MONTHLY, now).start;
          expect(isOfPeriod || next + kept_days * 86_400_000 > now).toBe(true);
        }
      }),
    );
  });

  it('usage stays until the period of the budget is over, and follows its days from then on', () => {
    const policy = { ...DEFAULT_RETENTION, usage_events: { delete_after_days: 3 } };
    const fiscal = { period: 'fiscal_year', fiscal_year_start_month: 4 } as const;
    const day = (year: number, month: number, date: number): number => Date.UTC(year, month - 1, date) / 86_400_000;
    const cutoff = (at: number, budget: PeriodRule) => cutoffDay(policy, 'usage_events', startOfDay(at), budget);
    expect(cutoff(day(2026, 6, 30), MONTHLY)).toBe(day(2026, 5, 31));
    expect(cutoff(day(2026, 7, 1), MONTHLY)).toBe(day(2026, 6, 28));
    expect(cutoff(day(2026, 7, 8), MONTHLY)).toBe(day(2026, 6, 30));
    expect(cutoff(day(2027, 3, 31), fiscal)).toBe(day(2026, 3, 31));
    expect(cutoff(day(2027, 4, 1), fiscal)).toBe(day(2027, 3, 29));
    fc.assert(
      fc.property(
        days,
        instant,
        fc.integer({ min: 1, max: 12 }),
        fc.constantFrom('month' as const, 'fiscal_year' as const),
        (kept, now, month, period) => {
          const rule = { period, fiscal_year_start_month: month };
          const short = { ...DEFAULT_RETENTION, usage_events: { delete_after_days: kept } };
          expect(startOfDay(cutoffDay(short, 'usage_events', now, rule) + 1)).toBeLessThanOrEqual(
            periodAt(rule, now).start,
          );
        },
      ),
    );
  });

  it('what is due never shrinks as time passes, and texts are due before metadata before rows', () => {
    fc.assert(
      fc.property(policies, instant, fc.nat(startOfDay(500)), (policy, now, later) => {
        for (const kept of RETAINED_KINDS)
          expect(cutoffDay(policy, kept, now + later, MONTHLY)).toBeGreaterThanOrEqual(
            cutoffDay(policy, kept, now, MONTHLY),
          );
        expect(cutoffDay(policy, 'texts', now, MONTHLY)).toBeGreaterThanOrEqual(
          cutoffDay(policy, 'metadata', now, MONTHLY),
        );
        expect(cutoffDay(policy, 'metadata', now, MONTHLY)).toBeGreaterThanOrEqual(
          cutoffDay(policy, 'telemetry', now, MONTHLY),
        );
      }),
    );
  });

  it('at an instant before anything could be due nothing is', () => {
    expect(cutoffDay(DEFAULT_RETENTION, 'texts', startOfDay(3), MONTHLY)).toBe(NEVER);
    expect(cutoffDay(DEFAULT_RETENTION, 'telemetry', startOfDay(60_000), MONTHLY)).toBe(NEVER);
  });
});

describe('ranges of orgs', () => {
  const orgs = fc.uniqueArray(
    fc.string({ unit: fc.constantFrom('a', 'b', 'Z', '_', '.', '9'), minLength: 1, maxLength: 6 }),
    {
      maxLength: 40,
    },
  );

  it('ranges contain every organization exactly once, with its own cutoffs, and name no more than permitted', () => {
    fc.assert(
      fc.property(
        orgs,
        fc.array(policies, { minLength: 40, maxLength: 40 }),
        instant,
        fc.integer({ min: 1, max: 7 }),
        fc.string(),
        (ids, given, now, max, other) => {
          const own: OrgPolicy[] = ids.map((org_id, index) => ({
            org_id,
            policy: given[index] ?? DEFAULT_RETENTION,
            budget: MONTHLY,
          }));
          const ranges = cutoffRanges(own, now, max);
          for (const org of [...ids, other, '', '\u{10ffff}']) {
            const inside = ranges.filter(({ from, until }) => org >= from && (until === null || org < until));
            expect(inside).toHaveLength(1);
            const [range] = inside;
            const at = range?.orgs.indexOf(org) ?? -1;
            const policy = own.find(({ org_id }) => org_id === org)?.policy ?? DEFAULT_RETENTION;
            for (const kept of RETAINED_KINDS) {
              const cutoff = at === -1 ? range?.others[kept] : range?.cutoffs[kept][at];
              expect(cutoff).toBe(cutoffDay(policy, kept, now, MONTHLY));
            }
          }
          for (const range of ranges) {
            expect(range.orgs.length).toBeLessThanOrEqual(max);
            for (const kept of RETAINED_KINDS)
              expect(newestCutoff(range, kept)).toBe(Math.max(range.others[kept], ...range.cutoffs[kept]));
          }
        },
      ),
    );
  });
});

describe('a policy', () => {
  it('a policy keeps what a change does not name, and is read back as written', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(changedRetention(policy, {})).toEqual(policy);
        expect(changedRetention(DEFAULT_RETENTION, retentionChange.parse(policy))).toEqual(policy);
        expect(parseRetention(JSON.stringify(policy))).toEqual(policy);
        expect(retentionProblem(policy)).toBeNull();
      }),
    );
  });

  it('a policy reads null as never, or as the default where never is not possible', () => {
    const set = changedRetention(DEFAULT_RETENTION, {
      telemetry_events: { full_prompt_response_days: 3, delete_after_days: 500 },
      usage_events: { delete_after_days: 9 },
    });
    expect(
      changedRetention(set, {
        telemetry_events: { full_prompt_response_days: null, delete_after_days: null },
        usage_events: { delete_after_days: null },
      }),
    ).toEqual({
      ...DEFAULT_RETENTION,
      usage_events: { delete_after_days: null },
    });
  });

  it('a policy of an older release has the defaults for missing fields', () => {
    expect(parseRetention('{"telemetry_events":{"full_prompt_response_days":7}}')).toEqual(
      changedRetention(DEFAULT_RETENTION, { telemetry_events: { full_prompt_response_days: 7 } }),
    );
  });

  it.each([
    [
      { full_prompt_response_days: 400 },
      'telemetry_events.metadata_only_days: must be at least full_prompt_response_days (400); got 365',
    ],
    [
      { delete_after_days: 100 },
      'telemetry_events.delete_after_days: must be at least metadata_only_days (365), or null; got 100',
    ],
    [{ full_prompt_response_days: 10, metadata_only_days: 10, delete_after_days: 10 }, null],
  ])('%j', (change, problem) => {
    expect(retentionProblem(changedRetention(DEFAULT_RETENTION, { telemetry_events: change }))).toBe(problem);
  });
});
