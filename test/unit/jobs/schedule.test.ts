import { ClickHouseError } from '@clickhouse/client';
import { describe, expect, it } from 'vitest';
import { describeFailure } from '../../../pipeline/jobs/failure.ts';
import { slotBefore } from '../../../pipeline/jobs/schedule.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';

describe('slotBefore', () => {
  const at = (text: string): number => Date.parse(text);
  it.each([
    ['20 2 * * *', '2026-03-29T02:20:00.000Z', '2026-03-29T02:20:00.000Z'],
    ['20 2 * * *', '2026-03-29T02:20:59.999Z', '2026-03-29T02:20:00.000Z'],
    ['20 2 * * *', '2026-03-29T02:19:59.999Z', '2026-03-28T02:20:00.000Z'],
    ['0 * * * *', '2026-03-01T00:59:30.000Z', '2026-03-01T00:00:00.000Z'],
    ['*/5 * * * *', '2026-03-01T00:03:30.000Z', '2026-03-01T00:00:00.000Z'],
  ])('slotBefore of %s at %s is %s, in UTC', (cron, now, slot) => {
    expect(slotBefore(cron, at(now))).toBe(at(slot));
  });

  it('slotBefore is null for a schedule without a slot within days', () => {
    expect(slotBefore('0 0 1 1 *', at('2026-07-01T00:00:00Z'))).toBeNull();
  });

  it('slotBefore rejects an invalid expression', () => {
    expect(() => slotBefore('every day', 0)).toThrow();
  });
});

describe('describeFailure', () => {
  it('describeFailure gives the reason in a line, without statements', () => {
    const refused = new ClickHouseError({
      message: 'Unknown table in SELECT secret FROM x',
      code: '60',
      type: 'UNKNOWN_TABLE',
    });
    expect(describeFailure(refused)).toEqual({
      unavailable: false,
      detail: 'ClickHouse rejected a statement (code 60)',
    });
    expect(describeFailure(new StoreUnavailable('agents_last_seen: connect ECONNREFUSED'))).toMatchObject({
      unavailable: true,
    });
    expect(describeFailure(new Error(`${'x'.repeat(400)}\nat file.ts`)).detail).toHaveLength(300);
    expect(describeFailure('gone')).toEqual({ unavailable: false, detail: 'gone' });
  });
});
