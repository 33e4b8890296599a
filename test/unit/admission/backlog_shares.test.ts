import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { OutgoingEvent } from '../../../api/intake/ingest/publisher.ts';
import {
  ACTIVE_MS,
  BacklogShares,
  BACKLOG_MIN,
  CAUGHT_UP_MS,
  ENTRIES_MAX,
  EVENT_COST,
  fairLevel,
  STALL_MS,
} from '../../../api/admission/backlog_shares.ts';

const PARTITIONS = 2;
const MIB = 1024 * 1024;

let now = 0;
let seq = 0;
let shares = new BacklogShares(PARTITIONS, () => now);

beforeEach(() => {
  [now, seq] = [0, 0];
  shares = new BacklogShares(PARTITIONS, () => now);
});

const event = (org_id: string, partition: number, bytes: number): OutgoingEvent => ({
  event: { org_id, format: 'custom', event_hex: '0'.repeat(16), trace_id: 't', received_at: 0, body: '' },
  partition,
  bytes,
});

/** Stores an organization's bytes in a partition and returns their position. */
function store(org: string, bytes: number, partition = 0): number {
  seq += 1;
  shares.stored([event(org, partition, bytes - EVENT_COST)], new Map([[partition, seq]]));
  return seq;
}

const isAdmitted = (org_id: string): boolean => shares.decide({ org_id }).kind === 'admit';

/** Everything that is in the log has landed. */
const landAll = (): void => {
  shares.landed(Array.from({ length: PARTITIONS }, (_, partition) => [partition, seq] as const));
};

/** Both organizations are present; one has more bytes in the log than may wait. */
function flood(): void {
  store('quiet', 1000);
  landAll();
  for (let at = 0; at <= BACKLOG_MIN; at += MIB) store('noisy', MIB);
  now += 100;
}

describe('fair level', () => {
  const amounts = fc.array(fc.nat(1000), { maxLength: 20 });

  it('the fair level cuts amounts so that their sum is the total, and no further', () => {
    fc.assert(
      fc.property(amounts, fc.integer({ min: 1, max: 5000 }), (list, most) => {
        const level = fairLevel(list, most);
        const total = list.reduce((sum, amount) => sum + amount, 0);
        if (total <= most) expect(level).toBe(Infinity);
        else expect(list.reduce((sum, amount) => sum + Math.min(amount, level), 0)).toBeCloseTo(most, 6);
      }),
    );
  });

  it('the fair level leaves small amounts alone', () => {
    expect(fairLevel([10, 20, 900], 100)).toBe(70);
    expect(fairLevel([900, 10, 900], 110)).toBe(50);
  });
});

describe('shares', () => {
  it('an organization that floods is rejected with Retry-After, and no other', () => {
    flood();
    expect(shares.decide({ org_id: 'noisy' })).toMatchObject({
      kind: 'reject',
      code: 'rate_limited',
      retry_after_seconds: 1,
    });
    expect(isAdmitted('quiet')).toBe(true);
    expect(isAdmitted('never seen')).toBe(true);
    store('quiet', 5000);
    now += 100;
    expect(isAdmitted('quiet')).toBe(true);
  });

  it('a rejected organization is admitted again once its backlog has landed', () => {
    flood();
    expect(isAdmitted('noisy')).toBe(false);
    landAll();
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('an organization that is alone is never rejected, however much it sends', () => {
    for (let at = 0; at < 50; at += 1) store('only', MIB);
    now += 100;
    expect(isAdmitted('only')).toBe(true);
  });

  it('no organization is rejected when all send alike', () => {
    for (let at = 0; at < 20; at += 1) for (const org of ['a', 'b', 'c']) store(org, MIB);
    now += 100;
    expect(['a', 'b', 'c'].map(isAdmitted)).toEqual([true, true, true]);
  });

  it('an organization that has not sent for a while is not protected', () => {
    flood();
    now += ACTIVE_MS / 2;
    store('noisy', 1000);
    landAll();
    store('noisy', 2 * BACKLOG_MIN);
    now += 100;
    expect(isAdmitted('noisy')).toBe(false);
    now += ACTIVE_MS / 2;
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('a backlog that lands within the permitted time rejects nobody', () => {
    // 20 MiB a second land, so 12 MiB are 0.6 s of work.
    for (let at = 0; at < 100; at += 1) {
      store('quiet', 1000);
      store('noisy', 2 * MIB);
      now += 100;
      landAll();
    }
    store('noisy', 12 * MIB);
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
    store('noisy', 12 * MIB);
    now += 100;
    expect(isAdmitted('noisy')).toBe(false);
  });

  it('a request that was admitted counts with the mean cost of its organization until it ends', () => {
    store('quiet', 1000);
    for (let at = 0; at < 100; at += 1) store('noisy', MIB);
    // Everything lands slowly, so that BACKLOG_MIN may wait.
    now += STALL_MS / 2;
    landAll();
    now += STALL_MS / 2;
    store('quiet', 1000);
    shares.landed([]);
    const admitted = Array.from({ length: 100 }, () => shares.decide({ org_id: 'noisy' })).flatMap((decision) =>
      decision.kind === 'admit' ? [decision] : [],
    );
    expect(admitted.length).toBeGreaterThan(1);
    expect(admitted.length).toBeLessThan(100);
    for (const { reservation } of admitted) reservation?.release();
    for (const { reservation } of admitted) reservation?.release();
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('an organization of which no event was ever stored protects nobody', () => {
    store('noisy', 2 * BACKLOG_MIN);
    shares.decide({ org_id: 'only invalid events' });
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('events that landed before their confirmation arrived count as landed', () => {
    shares.landed([[0, 10]]);
    seq = 4;
    store('quiet', 1000);
    store('noisy', 2 * BACKLOG_MIN);
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('each partition is counted by its own position in the log', () => {
    store('quiet', 1000, 1);
    const last = store('noisy', 2 * BACKLOG_MIN, 0);
    shares.landed([[1, last]]);
    now += 100;
    expect(isAdmitted('noisy')).toBe(false);
    shares.landed([[0, last]]);
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
  });

  it('no organization is rejected while the store is down and until the worker has caught up', () => {
    flood();
    expect(isAdmitted('noisy')).toBe(false);
    now += STALL_MS;
    expect(isAdmitted('noisy')).toBe(true);
    const before = store('noisy', 2 * BACKLOG_MIN);
    store('quiet', 1000);
    now += 100;
    // Landing continues, but not yet with what was stored since.
    shares.landed([
      [0, 1],
      [1, 1],
    ]);
    expect(isAdmitted('noisy')).toBe(true);
    now += STALL_MS;
    // Everything from before the outage has landed after a long time; what arrived meanwhile counts
    // next.
    shares.landed([[0, before]]);
    store('noisy', 2 * BACKLOG_MIN);
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
    // And that within moments.
    landAll();
    now += CAUGHT_UP_MS / 2;
    landAll();
    flood();
    expect(isAdmitted('noisy')).toBe(false);
    expect(isAdmitted('quiet')).toBe(true);
  });

  it('counting starts again when more waits than is counted', () => {
    // No two entries in a row belong to one organization, so that each is counted by itself.
    for (let at = 0; at <= ENTRIES_MAX; at += 1) store(at % 2 === 0 ? 'quiet' : 'noisy', at % 2 === 0 ? 600 : 2000);
    now += 100;
    expect(isAdmitted('noisy')).toBe(true);
    landAll();
    flood();
    expect(isAdmitted('noisy')).toBe(false);
  });

  it('an organization that floods beyond the grace period is rejected again', () => {
    flood();
    now += STALL_MS;
    store('quiet', 1000);
    // Landing continues, always far behind.
    for (let at = 0; at < 100; at += 1) {
      now += 1000;
      store('quiet', 1000);
      const place = store('noisy', 2 * MIB);
      shares.landed([[0, place - 1]]);
    }
    flood();
    expect(isAdmitted('noisy')).toBe(false);
  });
});
