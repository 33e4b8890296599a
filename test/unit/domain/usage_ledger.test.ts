// The ledger counts admitted use once, in any order of confirmations, reports, repeated reports and
// reads.
import { expect, test } from 'vitest';
import { nothingUsed } from '../../../pipeline/domain/budgets/budget.ts';
import {
  type AccountScope,
  type AskedUse,
  type LandedReport,
  type StoredSum,
  UsageLedger,
  type UsageRow,
} from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { SLOTS_MAX } from '../../../pipeline/domain/budgets/usage_reserves.ts';

const HOUR = 3_600_000;
const ORG = 'org_a';
const PARTITIONS = [0, 1, 2];
/** What the store adds to the JetStream sequences of the log. */
const LOG_BASE = 1000;
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
const scopeOf = (from = 0, until = Infinity, agents: string[] = ['a', 'b']): AccountScope => ({
  from,
  until,
  agents: new Set(agents),
});
const ALL = scopeOf();

/** A worker that reports its landings: each report names the one before it. */
function aTeller(epoch = 1) {
  const told = new Map<number, number>();
  return (partition: number, seq: number, rows: UsageRow[] = []): LandedReport => {
    const after = told.get(partition) ?? 0;
    if (rows.length > 0) told.set(partition, LOG_BASE + seq);
    return { partition, epoch, landed_through: seq, after, log_seq: rows.length > 0 ? LOG_BASE + seq : 0, rows };
  };
}
const sum = (tokens: number, seq: number, partition = 0, agent_id = ''): StoredSum => ({
  ...use(tokens, partition, agent_id),
  log_seq: LOG_BASE + seq,
});

/** Returns an account that has been read, of a ledger with a report from every partition. */
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
  return ledger.endRead(ORG, scope, sums, LOG_BASE);
}

test('admitted use counts at once, and once when it has landed', () => {
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
  expect([ledger.agentUsed(ORG, 'a').tokens, ledger.agentUsed(ORG, 'b').tokens]).toEqual([5, 7]);
  const second = report(1, 4, [row(7, HOUR, 'b')]);
  ledger.landed(second);
  ledger.landed(second);
  expect(ledger.used(ORG).tokens).toBe(12);
  expect(ledger.agentUsed(ORG, 'b').tokens).toBe(7);
  expect(ledger.takeGap()).toBe(false);
});

test('only agents with limits of their own are counted separately, also when they get them later', () => {
  const { ledger, report } = opened(scopeOf(0, Infinity, ['a']));
  ledger.landed(report(0, 1, [row(5, HOUR, 'a'), row(7, HOUR, 'b')]));
  ledger.reserve(ORG, [use(2, 0, 'a'), use(3, 0, 'b')]);
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens, ledger.agentUsed(ORG, 'b').tokens]).toEqual([
    17, 7, 0,
  ]);
  expect(ledger.open(ORG, ALL)).toBe(true);
  read(ledger, ALL, [sum(5, 1, 0, 'a'), sum(7, 1, 0, 'b')]);
  ledger.reserve(ORG, [use(4, 0, 'b')]);
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens, ledger.agentUsed(ORG, 'b').tokens]).toEqual([
    21, 7, 11,
  ]);
  expect(ledger.open(ORG, scopeOf(0, Infinity, ['b']))).toBe(false);
});

test('use that was cancelled, or rejected by the log, is released', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).cancel();
  expect(ledger.used(ORG).tokens).toBe(0);
  ledger.reserve(ORG, [use(9)]).confirm(new Map([[0, 8]]));
  ledger.landed(report(0, 7));
  expect(ledger.used(ORG).tokens).toBe(9);
  ledger.landed(report(0, 8));
  expect(ledger.used(ORG).tokens).toBe(0);
});

test('a confirmation out of order is released with its own landing', () => {
  const { ledger, report } = opened();
  const [late, early] = [ledger.reserve(ORG, [use(4)]), ledger.reserve(ORG, [use(3)])];
  late.confirm(new Map([[0, 9]]));
  early.confirm(new Map([[0, 5]]));
  ledger.landed(report(0, 5, [row(3)]));
  expect(ledger.used(ORG).tokens).toBe(7);
  ledger.landed(report(0, 9, [row(4)]));
  expect(ledger.used(ORG).tokens).toBe(7);
});

test('far more reservations than there are slots are all counted, and all released', () => {
  const { ledger, report } = opened();
  for (let seq = 1; seq <= 10_000; seq++)
    ledger.reserve(ORG, [use(1, 0, seq % 2 === 0 ? 'a' : '')]).confirm(new Map([[0, seq]]));
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens]).toEqual([10_000, 5000]);
  ledger.landed(report(0, 10_000, [row(10_000)]));
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens]).toEqual([10_000, 0]);
});

test('while a backlog beyond the bound lands, at most the messages of one slot are counted twice', () => {
  const { ledger, report } = opened();
  const messages = 16 * SLOTS_MAX;
  for (let seq = 1; seq <= messages; seq++) ledger.reserve(ORG, [use(1)]).confirm(new Map([[0, seq]]));
  const seen: number[] = [];
  for (let seq = 1001; seq <= messages; seq += 1000) {
    ledger.landed(report(0, seq, [row(seq === 1001 ? 1001 : 1000)]));
    seen.push(ledger.used(ORG).tokens - messages);
  }
  expect(Math.min(...seen)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...seen)).toBeLessThan(64);
});

test('a landing reported before its confirmation releases the reservation at once', () => {
  const { ledger, report } = opened();
  const reservation = ledger.reserve(ORG, [use(5)]);
  ledger.landed(report(0, 2, [row(5)]));
  reservation.confirm(new Map([[0, 2]]));
  expect(ledger.used(ORG).tokens).toBe(5);
});

test('sums of the store that include a landing end its reservation before the report of the landing arrives', () => {
  const { ledger, report } = opened();
  const confirmed = ledger.reserve(ORG, [use(5, 0, 'a')]);
  confirmed.confirm(new Map([[0, 2]]));
  const late = ledger.reserve(ORG, [use(7, 0)]);
  ledger.reserve(ORG, [use(11, 0)]).confirm(new Map([[0, 4]]));
  // Messages 2 and 3 have landed together; 4 has not.
  const landing = report(0, 3, [row(5, HOUR, 'a'), row(7)]);
  read(ledger, ALL, [sum(5, 3, 0, 'a'), sum(7, 3)]);
  late.confirm(new Map([[0, 3]]));
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens]).toEqual([23, 5]);
  ledger.landed(landing);
  expect([ledger.used(ORG).tokens, ledger.agentUsed(ORG, 'a').tokens]).toEqual([23, 5]);
  ledger.landed(report(0, 4, [row(11)]));
  expect(ledger.used(ORG).tokens).toBe(23);
});

test('sums of an older log end no reservation', () => {
  const { ledger } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 2]]));
  read(ledger, ALL, [sum(9, -500)]);
  expect(ledger.used(ORG).tokens).toBe(14);
  ledger.beginRead(ORG);
  ledger.endRead(ORG, ALL, [sum(9, -500)], null);
  expect(ledger.used(ORG).tokens).toBe(14);
});

test('sums read while landings are reported include each of them once', () => {
  const { ledger, report } = opened();
  ledger.beginRead(ORG);
  ledger.landed(report(0, 1, [row(3)]));
  ledger.landed(report(0, 2, [row(4)]));
  // The store had the first, not the second.
  expect(ledger.endRead(ORG, ALL, [sum(3, 1)], LOG_BASE)).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(7);
});

test('a lost report is noticed, and nothing is released until the store has been read again', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  const lost = report(0, 1, [row(5)]);
  ledger.landed(report(0, 1));
  expect([ledger.takeGap(), ledger.takeGap()]).toEqual([true, false]);
  expect(ledger.used(ORG).tokens).toBe(5);
  // A read that began before the next lost report is invalid.
  ledger.beginRead(ORG);
  report(1, 1, [row(9)]);
  ledger.landed(report(1, 1));
  expect(ledger.endRead(ORG, ALL, [sum(5, 1)], LOG_BASE)).toBe(false);
  expect(ledger.used(ORG).tokens).toBe(5);
  expect(read(ledger, ALL, [sum(5, 1), sum(9, 1, 1)])).toBe(true);
  ledger.landed(lost);
  expect(ledger.used(ORG).tokens).toBe(14);
});

test("a landing that a dead worker did not report is found by the next worker's first report", () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  const next = aTeller(2);
  ledger.landed(next(0, 1));
  expect(ledger.takeGap()).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(5);
  read(ledger, ALL, [sum(5, 1)]);
  expect(ledger.used(ORG).tokens).toBe(5);
  // The former worker wakes up and reports what has been read already.
  ledger.landed(report(0, 1, [row(5)]));
  ledger.landed(next(0, 2, [row(4)]));
  expect([ledger.takeGap(), ledger.used(ORG).tokens]).toEqual([false, 9]);
});

test('a new period starts at zero, whatever of the old one has not landed, and counts only its own hours', () => {
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
  expect(ledger.endRead(ORG, next, [sum(8, 1)], LOG_BASE)).toBe(true);
  expect(ledger.used(ORG).tokens).toBe(18);
  inFlight.confirm(new Map([[0, 3]]));
  ledger.landed(report(0, 3, [row(2, 9 * HOUR), row(6, 10 * HOUR)]));
  expect(ledger.used(ORG).tokens).toBe(18);
  // A longer period, as a policy may choose, includes the hours of the old one again.
  const both = scopeOf(0, 20 * HOUR);
  ledger.reserve(ORG, [use(1, 0, '', 9 * HOUR)]);
  ledger.open(ORG, both);
  read(ledger, both, [sum(123, 3)]);
  expect(ledger.used(ORG).tokens).toBe(124);
});

test('an organization without an account costs nothing and breaks nothing', () => {
  const ledger = new UsageLedger();
  const report = aTeller();
  const reservation = ledger.reserve('org_b', [use(5)]);
  expect(ledger.landed(report(0, 1, [row(5, HOUR, '', 'org_b')]))).toEqual([]);
  reservation.confirm(new Map([[0, 1]]));
  expect(ledger.used('org_b')).toEqual(nothingUsed());
});

test('a closed account keeps no reservation waiting', () => {
  const { ledger, report } = opened();
  ledger.reserve(ORG, [use(5)]).confirm(new Map([[0, 1]]));
  ledger.close(ORG);
  ledger.landed(report(0, 1, [row(5)]));
  ledger.open(ORG, ALL);
  read(ledger, ALL, [sum(5, 1)]);
  expect(ledger.used(ORG).tokens).toBe(5);
});
