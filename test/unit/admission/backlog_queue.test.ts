// Requests of organizations above their share of the backlog wait for landings, in turns and within bounds.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BacklogQueue, ORG_WAITING_MAX, WAIT_MS_MAX, WAITING_MAX } from '../../../api/admission/backlog_queue.ts';
import { ABOVE_SHARE, BacklogShares, BACKLOG_MIN, EVENT_COST } from '../../../api/admission/backlog_shares.ts';
import { ADMIT, type Decision, type Settled } from '../../../api/admission/decision.ts';

let now = 0;
/** Requests that each organization may still have admitted. */
let room = new Map<string, number>();
const shares = {
  decide: ({ org_id }: { org_id: string }): Settled => {
    const left = room.get(org_id) ?? 0;
    if (left === 0) return ABOVE_SHARE;
    room.set(org_id, left - 1);
    return ADMIT;
  },
};
let queue = new BacklogQueue(shares, () => now);

beforeEach(() => {
  vi.useFakeTimers();
  now = 0;
  room = new Map();
  queue = new BacklogQueue(shares, () => now);
});
afterEach(() => {
  vi.useRealTimers();
});

/** Asks for requests of an organization. Returns their outcomes, which appear as they are decided. */
function ask(org_id: string, times = 1): { outcomes: string[] } {
  const outcomes: string[] = [];
  for (let at = 0; at < times; at += 1) {
    const decision: Decision = queue.decide({ org_id });
    if (decision.kind === 'wait')
      void decision.decided.then(({ kind }) => {
        outcomes.push(kind);
      });
    else outcomes.push(`${decision.kind} at once`);
  }
  return { outcomes };
}
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
};

describe('BacklogQueue', () => {
  it('admits an organization within its share at once, also while another one waits', () => {
    ask('noisy', 3);
    room.set('quiet', 1);
    expect(ask('quiet').outcomes).toEqual(['admit at once']);
  });

  it('admits a waiting request when a landing makes room for it, and no more than there is room for', async () => {
    const { outcomes } = ask('noisy', 3);
    queue.serve();
    await settle();
    expect(outcomes).toEqual([]);
    room.set('noisy', 2);
    queue.serve();
    await settle();
    expect(outcomes).toEqual(['admit', 'admit']);
  });

  it('admits no request before those of its organization that wait', () => {
    ask('noisy');
    room.set('noisy', 1);
    expect(ask('noisy').outcomes).toEqual([]);
  });

  it('rejects a request that has waited too long, and those behind it go on waiting', async () => {
    const first = ask('noisy');
    now = WAIT_MS_MAX / 2;
    const second = ask('noisy');
    now = WAIT_MS_MAX;
    queue.serve();
    await settle();
    expect([first.outcomes, second.outcomes]).toEqual([['reject'], []]);
  });

  it('looks at waiting requests by itself while nothing lands', async () => {
    const { outcomes } = ask('noisy', 2);
    room.set('noisy', 1);
    await vi.advanceTimersByTimeAsync(100);
    expect(outcomes).toEqual(['admit']);
    now = WAIT_MS_MAX;
    await vi.advanceTimersByTimeAsync(100);
    expect(outcomes).toEqual(['admit', 'reject']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('serves organizations in turns', async () => {
    const order: string[] = [];
    for (const org_id of ['a', 'a', 'a', 'b', 'b']) {
      const decision = queue.decide({ org_id });
      if (decision.kind === 'wait') void decision.decided.then(() => order.push(org_id));
    }
    room = new Map([
      ['a', 9],
      ['b', 9],
    ]);
    queue.serve();
    await settle();
    expect(order).toEqual(['a', 'b', 'a', 'b', 'a']);
  });

  it('rejects at once when too many requests of an organization wait, or too many in all', () => {
    expect(ask('noisy', ORG_WAITING_MAX + 1).outcomes).toEqual(['reject at once']);
    for (let org = 1; org < WAITING_MAX / ORG_WAITING_MAX; org += 1)
      expect(ask(`org_${org}`, ORG_WAITING_MAX).outcomes).toEqual([]);
    expect(ask('another').outcomes).toEqual(['reject at once']);
    room.set('quiet', 1);
    expect(ask('quiet').outcomes).toEqual(['admit at once']);
  });
});

describe('BacklogQueue over BacklogShares', () => {
  it('admits as many waiting requests as fit into the share by what requests of the organization cost', async () => {
    const counted = new BacklogShares(1, () => now);
    const waiting = new BacklogQueue(counted, () => now);
    const cost = BACKLOG_MIN / 4;
    let seq = 0;
    const store = (org_id: string, bytes: number): void => {
      seq += 1;
      const event = { org_id, format: 'custom', event_hex: '', trace_id: '', received_at: 0, body: '' } as const;
      counted.stored([{ event, partition: 0, bytes: bytes - EVENT_COST }], new Map([[0, seq]]));
    };
    store('quiet', 1000);
    for (let at = 0; at < 50; at += 1) store('noisy', cost);
    now += 1000;
    let admitted = 0;
    for (let at = 0; at < 40; at += 1) {
      const decision = waiting.decide({ org_id: 'noisy' });
      if (decision.kind === 'wait')
        void decision.decided.then(({ kind }) => {
          if (kind === 'admit') admitted += 1;
        });
    }
    // The landing makes room for 0.7 s of it, which is fewer requests than wait.
    counted.landed([[0, seq]]);
    waiting.serve();
    await settle();
    expect(admitted).toBeGreaterThan(0);
    expect(admitted).toBeLessThan(40);
  });
});
