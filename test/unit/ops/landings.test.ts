// Landing reports on the wire: they fit a message whatever a sender calls its agents, and receivers
// count them correctly.
import type { NatsConnection } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { followLandingReports, reportLanded } from '../../../ops/exchange/landing_reports.ts';
import type { LandingReport } from '../../../schemas/signals/landing_reports.ts';
import { type Accounts, UsageReports } from '../../../pipeline/budgets/feed.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { CountedUsage } from '../../../pipeline/landing/usage_rows.ts';
import type { PartitionState } from '../../../pipeline/worker/partition_state.ts';
import type { Progress } from '../../../pipeline/worker/prepare.ts';
import { anEvent } from '../../support/spans.ts';

const MIB = 1024 * 1024;
const PAYLOAD_MAX = 8 * MIB;

/**
 * A connection whose sender is its own receiver; it accepts no larger message than a server does.
 */
function wire() {
  const sizes: number[] = [];
  const heard: LandingReport[] = [];
  let hear: ((error: Error | null, message: { string: () => string }) => void) | undefined;
  const nc = {
    info: { max_payload: PAYLOAD_MAX },
    publish: (_subject: string, text: string) => {
      sizes.push(Buffer.byteLength(text));
      if (Buffer.byteLength(text) > PAYLOAD_MAX) throw new Error('max_payload size exceeded');
      hear?.(null, { string: () => text });
    },
    subscribe: (_subject: string, options: { callback: typeof hear }) => {
      hear = options.callback;
      return { unsubscribe: () => undefined };
    },
  } as unknown as NatsConnection;
  followLandingReports(
    nc,
    (reports) => {
      for (const report of reports) heard.push(report);
    },
    (problem, cause) => {
      throw new Error(problem, { cause });
    },
  );
  return { nc, sizes, heard };
}

const row = (agent_id: string, org_id = 'org_a'): LandingReport['rows'][number] => ({
  org_id,
  agent_id,
  key_id: '',
  hour: 0,
  tokens: 1,
  storage_bytes: 10,
  sandbox_micros: 0,
  cost_pico_usd: 7n,
});
const report = (partition: number, rows: LandingReport['rows'], after = 0): LandingReport => ({
  partition,
  epoch: 1,
  landed_through: 5,
  read_through: 5,
  behind: false,
  after,
  log_seq: rows.length > 0 ? 100 : 0,
  rows,
});

describe('telling', () => {
  it('landing reports share messages of bounded bytes, in order', () => {
    const { nc, sizes, heard } = wire();
    const rows = Array.from({ length: 100 }, (_, index) => row(`${'é'.repeat(500)}${index}`));
    const reports = Array.from({ length: 64 }, (_, partition) => report(partition, rows));
    reportLanded(nc, reports);
    expect(heard).toEqual(reports);
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThan(1.01 * MIB);
  });

  it('a landing report too large for a message is sent without its rows, as after a lost one', () => {
    const { nc, heard } = wire();
    const rows = Array.from({ length: 60_000 }, (_, index) => row(`${'a'.repeat(64)}${index}`));
    const [before, after] = [report(0, [row('a')]), report(2, [row('b')])];
    reportLanded(nc, [before, report(1, rows, 50), after]);
    expect(heard).toEqual([before, { ...report(1, []), after: 100, log_seq: 0 }, after]);
    const ledger = new UsageLedger();
    ledger.landed(report(1, [], 50));
    ledger.takeGap();
    for (const one of heard.filter(({ partition }) => partition === 1)) ledger.landed(one);
    expect(ledger.takeGap()).toBe(true);
    // The next report names it, and is counted by itself.
    ledger.landed({ ...report(1, [row('a')], 100), log_seq: 101 });
    expect(ledger.takeGap()).toBe(false);
  });

  it('nothing is sent when there is nothing to report', () => {
    const { nc, sizes } = wire();
    reportLanded(nc, []);
    expect(sizes).toEqual([]);
  });
});

describe('the rows of a report', () => {
  const accounts: Accounts = {
    isBudgeted: (org_id) => org_id !== 'org_none',
    isKeyBudgeted: (_, key_id) => key_id === 'ak_budgeted',
    limitedAgents: () => ['limited'],
  };
  const { usage } = anEvent(1);
  const counted = (agent_id: string, org_id = 'org_a'): CountedUsage => ({
    usage: { ...usage, org_id, agent_id, input_tokens: 3, output_tokens: 4, cost_pico_usd: 2n },
    partition: 1,
    log_seq: 100,
  });
  const state = { partition: 1, epoch: 1, read_through: 9 } as PartitionState;
  const progress: Progress[] = [{ state, landed_through: 10, settled_through: 10, completed_through: 10, heard_at: 0 }];

  it('the rows of a report distinguish every agent, where there are few', () => {
    const [told] = new UsageReports().ofLanding(
      { usage: [counted('a'), counted('b'), counted('c', 'org_none')], progress },
      accounts,
    );
    expect(told?.rows.map(({ agent_id }) => agent_id)).toEqual(['a', 'b']);
  });

  it('the rows of a report are as few as accounts distinguish, however many agents a sender invents', () => {
    const many = Array.from({ length: 80_000 }, (_, index) => counted(`${'x'.repeat(400)}${index}`));
    const [told] = new UsageReports().ofLanding(
      { usage: [...many, counted('limited'), counted('limited', 'org_b')], progress },
      accounts,
    );
    expect(
      told?.rows.map(({ org_id, agent_id, tokens, cost_pico_usd }) => [org_id, agent_id, tokens, cost_pico_usd]),
    ).toEqual([
      ['org_a', '', 560_000, 160_000n],
      ['org_a', 'limited', 7, 2n],
      ['org_b', 'limited', 7, 2n],
    ]);
    expect(told?.log_seq).toBe(100);
  });
});
