import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../../pipeline/queues/backoff.ts';
import { purgeBelow } from '../../../pipeline/worker/log_janitor.ts';
import { chooseParts, type RecentPart } from '../../../pipeline/landing/text_mover.ts';
import { dropDay, retentionClassDays } from '../../../pipeline/landing/row_encoders.ts';

const part = (over: Partial<RecentPart>): RecentPart => ({
  name: 'p',
  rows: 1000,
  bytes: 1_000_000,
  age_seconds: 0,
  ...over,
});

describe('chooseParts', () => {
  it('chooseParts waits while there is little and it is young', () => {
    expect(chooseParts([])).toEqual([]);
    expect(chooseParts([part({ rows: 20_000, age_seconds: 3 })])).toEqual([]);
  });
  it('chooseParts moves a large block at once, and any after the longest wait', () => {
    expect(chooseParts([part({ rows: 30_000 }), part({ rows: 20_000 })])).toHaveLength(2);
    expect(chooseParts([part({ rows: 20_000, age_seconds: 4 })])).toHaveLength(1);
  });
  it('chooseParts moves few rows after a second', () => {
    expect(chooseParts([part({ rows: 10, age_seconds: 1 })])).toHaveLength(1);
    expect(chooseParts([part({ rows: 10, age_seconds: 0 })])).toEqual([]);
  });
  it('chooseParts takes the oldest first and stays within its bytes, but always at least one part', () => {
    const big = 150 * 1024 * 1024;
    const parts = [
      part({ name: 'young', bytes: big, age_seconds: 1 }),
      part({ name: 'old', bytes: big, age_seconds: 9 }),
    ];
    expect(chooseParts(parts).map(({ name }) => name)).toEqual(['old']);
    expect(chooseParts([part({ name: 'huge', bytes: 10 * big, age_seconds: 9 })])).toHaveLength(1);
  });
});

describe('purgeBelow', () => {
  const log = { bytes: 800, bytes_max: 1000, first_seq: 101, last_seq: 200 };
  it('purgeBelow keeps everything while the log is less than half full', () => {
    expect(purgeBelow({ ...log, bytes: 500 }, 200)).toBeNull();
  });
  it('purgeBelow removes the oldest landed messages, as many as bring it back to half', () => {
    expect(purgeBelow(log, 200)).toBe(101 + 38);
  });
  it('purgeBelow never removes what has not landed', () => {
    expect(purgeBelow(log, 110)).toBe(111);
    expect(purgeBelow(log, 100)).toBeNull();
  });
});

describe('backoffMs', () => {
  it('backoffMs grows to its bound and is never zero', () => {
    const full = (attempt: number): number => backoffMs(attempt, () => 1);
    expect([0, 1, 2, 3].map(full)).toEqual([50, 100, 200, 400]);
    expect(full(50)).toBe(2000);
    expect(backoffMs(0, () => 0)).toBe(25);
  });
});

describe('retentionClassDays', () => {
  it('retentionClassDays rounds up, never down', () => {
    expect([1, 2, 7, 8, 30, 31, 5000].map(retentionClassDays)).toEqual([1, 3, 7, 14, 30, 60, 5000]);
  });
});

describe('dropDay', () => {
  const DAY_MS = 86_400_000;
  const onDay = (started: number, received: number, days: number): number =>
    dropDay({ started_at: started * DAY_MS + 5, received_at: received * DAY_MS + 7 }, days);

  it('dropDay is the day it began plus its days, rounded up', () => {
    expect(onDay(20_000, 20_000, 8)).toBe(20_014);
    expect(onDay(20_000, 20_013, 8)).toBe(20_014);
  });

  it('dropDay is the day of arrival where it is due by then', () => {
    expect(onDay(12_700, 20_000, 30)).toBe(20_000);
    expect(onDay(-900, 20_000, 30)).toBe(20_000);
  });

  it('dropDay stays within what a Date can represent', () => {
    expect(onDay(65_530, 20_000, 30)).toBe(65_535);
  });
});
