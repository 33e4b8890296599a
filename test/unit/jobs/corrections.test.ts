// Messages of a repricing: each fits the log, and the same changes give the same messages.
import { expect, it } from 'vitest';
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { correctionMessages } from '../../../pipeline/jobs/correction_log.ts';
import { type CostChange, costCorrectionsCodec } from '../../../schemas/codec.ts';

const PARTITIONS = 2;
const plan = { plan_id: 'plan_1', org_id: 'org_a' };
const change = (n: number, name: string): CostChange => ({
  trace_id: `trc_${n}`,
  hour: 3_600_000,
  day: 20_000,
  agent_id: name,
  model: name,
  department: name,
  realm: name,
  cost_usd: '-0.000001',
});

it('corrections with the longest names in the longest UTF-8 fit the log, in order, each under an id of its own', () => {
  const changes = Array.from({ length: 5000 }, (_, n) => change(n, '漢'.repeat(512)));
  const messages = correctionMessages(plan, changes, PARTITIONS);
  const sizes = messages.map(({ corrections }) => costCorrectionsCodec.encode(corrections).length);
  expect(Math.max(...sizes)).toBeLessThan(MESSAGE_BYTES_MAX - 4096);
  expect(new Set(messages.map(({ corrections }) => corrections.correction_hex)).size).toBe(messages.length);
  for (const partition of [0, 1])
    expect(
      messages.filter((one) => one.partition === partition).flatMap(({ corrections }) => corrections.changes),
    ).toEqual(changes.filter(({ trace_id }) => partitionOf(plan.org_id, trace_id, PARTITIONS) === partition));
  expect(correctionMessages(plan, changes, PARTITIONS)).toEqual(messages);
});

it('a message holds 2,000 corrections where names are short', () => {
  const messages = correctionMessages(
    plan,
    Array.from({ length: 4500 }, (_, n) => change(n, 'a')),
    1,
  );
  expect(messages.map(({ corrections }) => corrections.changes.length)).toEqual([2000, 2000, 500]);
});
