// The budget check: who decides, and that a reservation ends once.
import { expect, test } from 'vitest';
import { BudgetCheck, type BudgetCheckDeps } from '../../../api/admission/budget/check.ts';
import type { BudgetVerdict } from '../../../api/admission/budget/gate.ts';
import { reject } from '../../../api/admission/decision.ts';
import { RateWindows } from '../../../api/admission/budget/rate_windows.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';

function aCheck(verdict: BudgetVerdict, more: { guarded?: boolean; known?: boolean; late?: boolean } = {}) {
  const ended: string[] = [];
  const reservation = {
    uses: [],
    confirm: () => ended.push('confirmed'),
    cancel: () => ended.push('cancelled'),
  };
  const decided = { kind: 'admit' as const, use: reservation };
  const asked: string[] = [];
  const deps: BudgetCheckDeps = {
    prices: createPriceBook(() => []),
    gate: { guards: () => more.guarded ?? true, check: () => verdict },
    deciders: {
      decide: () => {
        asked.push('decider');
        return more.late === true ? Promise.resolve(decided) : decided;
      },
    },
    sharing: {
      view: () => ({
        processes: 1,
        age_ms: 0,
        burst: { tokens: 0, storage_bytes: 0, sandbox_micros: 0, cost_pico_usd: 0n },
      }),
      announce: (_, announced) => {
        asked.push('announced');
        return announced;
      },
    },
    ledger: { reserve: () => reservation, merged: (_, uses) => [...uses] },
    windows: new RateWindows(() => 0),
    isKnown: () => more.known ?? true,
  };
  const check = new BudgetCheck(deps);
  return { decide: () => check.decide({ org_id: 'org_a', eventsOf: () => [] }), check, asked, ended };
}

test('admits an organization without a hard limit and does not look at its events', () => {
  const { check } = aCheck({ kind: 'passes' }, { guarded: false });
  const eventsOf = (): never => {
    throw new Error('looked at');
  };
  expect(check.decide({ org_id: 'org_a', eventsOf })).toMatchObject({ kind: 'admit', reservation: null });
});

test('far from every limit reserves in this process, and announces it', () => {
  const { decide, asked } = aCheck({ kind: 'passes' });
  expect(decide()).toMatchObject({ kind: 'admit' });
  expect(asked).toEqual(['announced']);
});

test('returns the rejection of the gate', () => {
  const rejection = reject('rate_limited', 'reached', 5);
  expect(aCheck(rejection).decide()).toBe(rejection);
});

test.each([
  ['near a limit', { kind: 'near' as const }, {}],
  ['where the use of the organization is not known', { kind: 'passes' as const }, { known: false }],
])('asks the decider %s', async (_, verdict, more) => {
  const { decide, asked } = aCheck(verdict, { ...more, late: true });
  const decision = decide();
  expect(asked).toEqual(['decider']);
  if (decision.kind !== 'wait') throw new Error('it does not wait');
  expect(await decision.decided).toMatchObject({ kind: 'admit' });
  expect(aCheck(verdict, more).decide()).toMatchObject({ kind: 'admit' });
});

test('a reservation that was confirmed is not cancelled at the end of the request', () => {
  const { decide, ended } = aCheck({ kind: 'passes' });
  const decision = decide();
  if (decision.kind !== 'admit') throw new Error('not admitted');
  decision.reservation?.confirm?.(new Map());
  decision.reservation?.release();
  decision.reservation?.release();
  expect(ended).toEqual(['confirmed']);
});
