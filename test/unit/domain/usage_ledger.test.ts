// The ledger counts what was let in once, whatever the order in which it is confirmed, reported, told again and read again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nothingUsed } from '../../../pipeline/domain/budget.ts';
import {
  type AccountScope,
  type AskedUse,
  type LandedReport,
  type StoredSum,
  UsageLedger,
  type UsageRow,
} from '../../../pipeline/domain/usage_ledger.ts';

const HOUR = 3_600_000;
const ORG = 'org_a';
const PARTITIONS = [0, 1, 2];
const use = (tokens: number, partition = 0, agent_id = '', hour = HOUR): AskedUse => ({
  tokens,
  storage_bytes: tokens * 10,
  sandbox_micros: tokens * 3,
  cost_pico_usd: BigInt(tokens) * 7n,
  agent_id,
  partition,
  hour,
});
const row = (tokens: number, hour = HOUR, agent_id = '', org_id = ORG): UsageRow => {
  const { storage_bytes, sandbox_micros, cost_pico_usd } = use(tokens);
  return { org_id, agent_id, hour, tokens, storage_bytes, sandbox_micros, cost_pico_usd };
};
const scopeOf = (from = 0, until = Infinity, agents: string[] = ['a', 'b']): AccountScope => ({ from, until, agents: new Set(agents) });
const ALL = scopeOf();

/** A worker that tells of its landings: each report names the one before it. */
function aTeller(epoch = 1) {
  const told = new Map<number, number>();
  return (partition: number, seq: number, rows: UsageRow[] = []): LandedReport => {
    const after = told.get(partition) ?? 0;
    if (rows.length > 0) told.set(partition, 1000 + seq);
    return { partition, epoch, landed_through: seq, after, log_seq: rows.length > 0 ? 1000 + seq : 0, rows };
  };
}
const sum = (tokens: number, seq: number, partition = 0, agent_id = ''): StoredSum => ({
  ...use(tokens, partition, agent_id),
  log_seq: 1000 + seq,
});

/** An account that has been read, of a ledger that has heard of every partition. */
function opened(scope = ALL) {
  const ledger = new UsageLedger();
  const report = aTeller();
  for (const partition of PARTITIONS) ledger.landed(report(partition, 0));
  ledger.takeGap();
  ledger.open(ORG, scope);
  read(ledger, scope, []);
  return { ledger, report };
}

function read(ledger: UsageLedger, scope: AccountScope, sums: StoredSum[]): boolean {
  ledger.beginRead(ORG);
  return ledger.endRead(ORG, scope, sums);
}

test('what is let in counts at once, and once when it has landed', () => {
  const { ledger, report } = opened();
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
  const second = report(1, 4, [row(7, HOUR, 'b')]);
  ledger.landed(second);
  ledger.landed(second);
  expect(ledger.used(ORG).tokens).toBe(12);
  expect(ledger.agentTokens(ORG, 'b')).toBe(7);
  expect(ledger.takeGap()).toBe(false);
});

test('only agents that have limits of their own are counted apart, also when they get them later', () => {
  const { ledger, report } = opened(scopeOf(0, Infinity, ['a']));
  ledger.landed(report(0, 1, [row(5, HOUR, 'a'), row(7, HOUR, 'b')]));
  ledger.reserve(ORG, [use(2, 0, 'a'), use(3, 0, 'b')]);
  expect([ledger.used(ORG).tokens, ledger.agentTokens(ORG, 'a'), ledger.agentTokens(ORG, 'b')]).toEqual([17, 7, 0]);
  expect(ledger.open(ORG, ALL)).toBe(true);
  read(ledger, ALL, [sum(5, 1, 0, 'a'), sum(7, 1, 0, 'b')]);
  ledger.reserve(ORG, [use(4, 0, 'b')]);
  expect([ledger.used(ORG).tokens, ledger.agentTokens(ORG, 'a'), ledger.agentTokens(ORG, 'b')]).toEqual([21, 7, 11]);
  expect(ledger.open(ORG, scopeOf(0, Infinity, ['b']))).toBe(false);
});

test('what was dropped on the way, or refused by the log, is given back', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).cancel();
  expect(ledger.used(ORG).tokens).toBe(0);
  ledger.reserve(ORG, [use(9)]).confirm(new Map([[0, 8]]));
  ledger.landed(report(0, 7));
  expect(ledger.used(ORG).tokens).toBe(9);
  ledger.landed(report(0, 8));
  expect(ledger.used(ORG).tokens).toBe(0);
});

test('a confirmation that comes out of order is given back with its own landing', () => {
  const { ledger, report } = opened();
  const [late, early] = [ledger.reserve(ORG, [use(4)]), ledger.reserve(ORG, [use(3)])];
  late.confirm(new Map([[0, 9]]));
  early.confirm(new Map([[0, 5]]));
  ledger.landed(report(0, 5, [row(3)]));
  expect(ledger.used(ORG).tokens).toBe(7);
  ledger.landed(report(0, 9, [row(4)]));
  expect(ledger.used(ORG).tokens).toBe(7);
});

test('far more reservations than are kept apart are all counted, and all given back', () => {
  const { ledger, report } = opened();
  for (let seq = 1; seq <= 10_000; seq++) ledger.reserve(ORG, [use(1, 0, seq % 2 === 0 ? 'a' : '')]).confirm(new Map([[0, seq]]));
  expect([ledger.used(ORG).tokens, ledger.agentTokens(ORG, 'a')]).toEqual([10_000, 5000]);
  ledger.landed(report(0, 10_000, [row(10_000)]));
  expect([ledger.used(ORG).tokens, ledger.agentTokens(ORG, 'a')]).toEqual([10_000, 0]);
});

test('a landing that is reported before its confirmation is heard gives the reservation back at once', () => {
  const { ledger, report } = opened();
  const reservation = ledger.reserve(ORG, [use(5)]);
  ledger.landed(report(0, 2, [row(5)]));
  reservation.confirm(new Map([[0, 2]]));
  expect(ledger.used(ORG).tokens).toBe(5);
});

test('sums that are read while landings are reported hold each of them once', () => {
  const { ledger, report } = opened();
  ledger.beginRead(ORG);
  ledger.landed(report(0, 1, [row(3)]));
  ledger.landed(report(0, 2, [row(4)]));
  // The store had the first, not the second.
  expect(ledger.endRead(ORG, ALL, [sum(3, 1)])).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(7);
});

test('a report that was lost is noticed, and nothing is given back until the store has been read again', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  const lost = report(0, 1, [row(5)]);
  ledger.landed(report(0, 1));
  expect([ledger.takeGap(), ledger.takeGap()]).toEqual([true, false]);
  expect(ledger.used(ORG).tokens).toBe(5);
  // A read that began before the next loss is no good.
  ledger.beginRead(ORG);
  report(1, 1, [row(9)]);
  ledger.landed(report(1, 1));
  expect(ledger.endRead(ORG, ALL, [sum(5, 1)])).toBe(false);
  expect(ledger.used(ORG).tokens).toBe(5);
  expect(read(ledger, ALL, [sum(5, 1), sum(9, 1, 1)])).toBe(true);
  ledger.landed(lost);
  expect(ledger.used(ORG).tokens).toBe(14);
});

test('what a worker landed and did not live to tell is found by the first word of the one after it', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  const next = aTeller(2);
  ledger.landed(next(0, 1));
  expect(ledger.takeGap()).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(5);
  read(ledger, ALL, [sum(5, 1)]);
  expect(ledger.used(ORG).tokens).toBe(5);
  // The former one wakes up and tells of what was read.
  ledger.landed(report(0, 1, [row(5)]));
  ledger.landed(next(0, 2, [row(4)]));
  expect([ledger.takeGap(), ledger.used(ORG).tokens]).toEqual([false, 9]);
});

test('a new period starts at nothing, whatever of the old one has not landed, and counts the hours of its own only', () => {
  const old = scopeOf(0, 10 * HOUR);
  const next = scopeOf(10 * HOUR, 20 * HOUR);
  const { ledger, report } = opened(old);
  ledger.landed(report(0, 1, [row(3, 5 * HOUR), row(8, 10 * HOUR)]));
  const inFlight = ledger.reserve(ORG, [use(2, 0, '', 9 * HOUR), use(6, 0, '', 10 * HOUR)]);
  expect(ledger.used(ORG).tokens).toBe(5);
  expect(ledger.open(ORG, next)).toBe(true);
  expect([ledger.isSettled(ORG), ledger.used(ORG).tokens]).toEqual([false, 6]);
  expect(read(ledger, old, [])).toBe(false);
  ledger.beginRead(ORG);
  ledger.landed(report(0, 2, [row(100, 9 * HOUR), row(4, 10 * HOUR)]));
  expect(ledger.endRead(ORG, next, [sum(8, 1)])).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(18);
  inFlight.confirm(new Map([[0, 3]]));
  ledger.landed(report(0, 3, [row(2, 9 * HOUR), row(6, 10 * HOUR)]));
  expect(ledger.used(ORG).tokens).toBe(18);
  // A longer period, as a policy may choose, takes the hours of the old one in again.
  const both = scopeOf(0, 20 * HOUR);
  ledger.reserve(ORG, [use(1, 0, '', 9 * HOUR)]);
  ledger.open(ORG, both);
  read(ledger, both, [sum(123, 3)]);
  expect(ledger.used(ORG).tokens).toBe(124);
});

test('an org without an account costs nothing and breaks nothing', () => {
  const ledger = new UsageLedger();
  const report = aTeller();
  const reservation = ledger.reserve('org_b', [use(5)]);
  expect(ledger.landed(report(0, 1, [row(5, HOUR, '', 'org_b')]))).toEqual([]);
  reservation.confirm(new Map([[0, 1]]));
  expect(ledger.used('org_b')).toEqual(nothingUsed());
});

test('an account that is closed keeps nothing waiting', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  ledger.close(ORG);
  ledger.landed(report(0, 1, [row(5)]));
  ledger.open(ORG, ALL);
  read(ledger, ALL, [sum(5, 1)]);
  expect(ledger.used(ORG).tokens).toBe(5);
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
      const { ledger, report } = opened();
      const log: { seq: number; use: AskedUse; landed: boolean }[] = [];
      const unconfirmed: (() => void)[] = [];
      const stored: StoredSum[] = [];
      let snapshot: StoredSum[] | null = null;
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
          const tokens = taken.reduce((all, entry) => all + entry.use.tokens, 0);
          for (const entry of taken) entry.landed = true;
          stored.push(sum(tokens, last.seq, one.partition));
          const told = report(one.partition, last.seq, [row(tokens)]);
          for (let i = 0; i < one.told; i++) ledger.landed(told);
        } else if (one.kind === 'begin') {
          ledger.beginRead(ORG);
          snapshot = [...stored];
        } else if (snapshot !== null) {
          ledger.endRead(ORG, ALL, snapshot);
          snapshot = null;
        }
        const admitted = log.reduce((all, entry) => all + entry.use.tokens, 0);
        expect(ledger.used(ORG).tokens).toBeGreaterThanOrEqual(admitted);
      }
      for (const confirm of unconfirmed) confirm();
      for (const partition of PARTITIONS) {
        const rest = log.filter((entry) => entry.use.partition === partition);
        const last = rest.at(-1)?.seq ?? 0;
        const open = rest.filter((entry) => !entry.landed).reduce((all, entry) => all + entry.use.tokens, 0);
        if (open > 0) stored.push(sum(open, last, partition));
        ledger.landed(report(partition, last, open > 0 ? [row(open)] : []));
      }
      ledger.beginRead(ORG);
      ledger.endRead(ORG, ALL, stored);
      expect(ledger.used(ORG).tokens).toBe(log.reduce((all, entry) => all + entry.use.tokens, 0));
    }),
    { numRuns: 500 },
  );
});
