// The ledger counts what was let in once, whatever the order in which it is confirmed, reported, told again and read again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nothingUsed } from '../../../pipeline/domain/budget.ts';
import { type AskedUse, type StoredSum, UsageLedger, type UsageRow } from '../../../pipeline/domain/usage_ledger.ts';

const HOUR = 3_600_000;
const ORG = 'org_a';
const use = (tokens: number, partition = 0, agent_id = ''): AskedUse => ({
  tokens,
  storage_bytes: tokens * 10,
  sandbox_micros: tokens * 3,
  cost_pico_usd: BigInt(tokens) * 7n,
  agent_id,
  partition,
});
const row = (tokens: number, hour = HOUR, agent_id = '', org_id = ORG): UsageRow => {
  const { partition: _, ...used } = use(tokens, 0, agent_id);
  return { ...used, org_id, hour };
};
const report = (partition: number, seq: number, rows: UsageRow[]) => ({ partition, landed_through: seq, log_seq: 1000 + seq, rows });

function opened(from = 0): UsageLedger {
  const ledger = new UsageLedger();
  ledger.open(ORG, from);
  ledger.beginRead(ORG);
  ledger.endRead(ORG, from, []);
  return ledger;
}

test('what is let in counts at once, and once when it has landed', () => {
  const ledger = opened();
  const reservation = ledger.reserve(ORG, [use(5, 0, 'a'), use(7, 1, 'b')]);
  expect(ledger.used(ORG).tokens).toBe(12);
  reservation.confirm(
    new Map([
      [0, 3],
      [1, 4],
    ]),
  );
  ledger.landed(report(0, 3, [row(5, HOUR, 'a')]));
  expect(ledger.used(ORG)).toMatchObject({ tokens: 12, storage_bytes: 120, sandbox_micros: 36, cost_pico_usd: 84n });
  expect([ledger.agentTokens(ORG, 'a'), ledger.agentTokens(ORG, 'b')]).toEqual([5, 7]);
  ledger.landed(report(1, 4, [row(7, HOUR, 'b')]));
  ledger.landed(report(1, 4, [row(7, HOUR, 'b')]));
  expect(ledger.used(ORG).tokens).toBe(12);
  expect(ledger.agentTokens(ORG, 'b')).toBe(7);
});

test('what was dropped on the way, or refused by the log, is given back', () => {
  const ledger = opened();
  ledger.reserve(ORG, [use(5)]).cancel();
  expect(ledger.used(ORG).tokens).toBe(0);
  ledger.reserve(ORG, [use(9)]).confirm(new Map([[0, 8]]));
  ledger.landed(report(0, 7, []));
  expect(ledger.used(ORG).tokens).toBe(9);
  ledger.landed(report(0, 8, []));
  expect(ledger.used(ORG).tokens).toBe(0);
});

test('a landing that is reported before its confirmation is heard gives the reservation back at once', () => {
  const ledger = opened();
  const reservation = ledger.reserve(ORG, [use(5)]);
  ledger.landed(report(0, 2, [row(5)]));
  reservation.confirm(new Map([[0, 2]]));
  expect(ledger.used(ORG).tokens).toBe(5);
});

test('sums that are read while landings are reported hold each of them once', () => {
  const ledger = opened();
  ledger.beginRead(ORG);
  ledger.landed(report(0, 1, [row(3)]));
  ledger.landed(report(0, 2, [row(4)]));
  // The store had the first, not the second.
  expect(ledger.endRead(ORG, 0, [{ ...use(3), partition: 0, log_seq: 1001 }])).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(7);
});

test('a new period starts at nothing, and counts the hours of its own only', () => {
  const ledger = opened(0);
  ledger.landed(report(0, 1, [row(3, 5 * HOUR)]));
  const inFlight = ledger.reserve(ORG, [use(2)]);
  ledger.open(ORG, 10 * HOUR);
  expect(ledger.isSettled(ORG)).toBe(false);
  ledger.beginRead(ORG);
  expect(ledger.endRead(ORG, 0, [])).toBe(false);
  ledger.beginRead(ORG);
  ledger.landed(report(0, 2, [row(100, 9 * HOUR), row(4, 10 * HOUR)]));
  expect(ledger.endRead(ORG, 10 * HOUR, [])).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(6);
  inFlight.cancel();
  expect(ledger.used(ORG).tokens).toBe(4);
});

test('an org without an account costs nothing and breaks nothing', () => {
  const ledger = new UsageLedger();
  const reservation = ledger.reserve('org_b', [use(5)]);
  expect(ledger.landed(report(0, 1, [row(5, HOUR, '', 'org_b')]))).toEqual([]);
  reservation.confirm(new Map([[0, 1]]));
  expect(ledger.used('org_b')).toEqual(nothingUsed());
});

/** Steps of a small world: a log of events, landings that take some of them, reports that may be told twice or never, re-reads. */
const step = fc.oneof(
  fc.record({ kind: fc.constant('admit' as const), tokens: fc.integer({ min: 1, max: 50 }), partition: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ kind: fc.constant('confirm' as const) }),
  fc.record({ kind: fc.constant('land' as const), partition: fc.integer({ min: 0, max: 2 }), told: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ kind: fc.constant('begin' as const) }),
  fc.record({ kind: fc.constant('end' as const) }),
);

test('after any history, once all is reported and read, the total is the sum of what landed; before, it is never less', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ledger = opened();
      const log: { seq: number; use: AskedUse; landed: boolean }[] = [];
      const unconfirmed: (() => void)[] = [];
      const stored: StoredSum[] = [];
      let snapshot: StoredSum[] | null = null;
      let lost = false;
      for (const one of steps) {
        if (one.kind === 'admit') {
          const asked = use(one.tokens, one.partition);
          const seq = log.length + 1;
          const reservation = ledger.reserve(ORG, [asked]);
          log.push({ seq, use: asked, landed: false });
          unconfirmed.push(() => {
            reservation.confirm(new Map([[asked.partition, seq]]));
          });
        } else if (one.kind === 'confirm') {
          unconfirmed.shift()?.();
        } else if (one.kind === 'land') {
          const taken = log.filter((entry) => !entry.landed && entry.use.partition === one.partition);
          const last = taken.at(-1);
          if (last === undefined) continue;
          const tokens = taken.reduce((sum, entry) => sum + entry.use.tokens, 0);
          for (const entry of taken) entry.landed = true;
          stored.push({ ...use(tokens, one.partition), log_seq: 1000 + last.seq });
          for (let i = 0; i < one.told; i++) ledger.landed(report(one.partition, last.seq, [row(tokens)]));
          lost ||= one.told === 0;
        } else if (one.kind === 'begin') {
          ledger.beginRead(ORG);
          snapshot = [...stored];
        } else if (snapshot !== null) {
          ledger.endRead(ORG, 0, snapshot);
          snapshot = null;
        }
        const admitted = log.reduce((sum, entry) => sum + entry.use.tokens, 0);
        if (!lost) expect(ledger.used(ORG).tokens).toBeGreaterThanOrEqual(admitted);
      }
      for (const confirm of unconfirmed) confirm();
      for (const partition of [0, 1, 2]) {
        const rest = log.filter((entry) => entry.use.partition === partition);
        const last = rest.at(-1)?.seq ?? 0;
        const open = rest.filter((entry) => !entry.landed).reduce((sum, entry) => sum + entry.use.tokens, 0);
        if (open > 0) stored.push({ ...use(open, partition), log_seq: 1000 + last });
        ledger.landed(report(partition, last, open > 0 ? [row(open)] : []));
      }
      ledger.beginRead(ORG);
      ledger.endRead(ORG, 0, stored);
      expect(ledger.used(ORG).tokens).toBe(log.reduce((sum, entry) => sum + entry.use.tokens, 0));
    }),
    { numRuns: 500 },
  );
});
