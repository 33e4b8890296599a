import { describe, expect, it } from 'vitest';
import {
  type Run,
  Running,
  RUNNING_MAX,
  RUNNING_ORG_MAX,
  WAITING_ORG_MAX,
} from '../../../api/telemetry/analysts/running.ts';

const here = new AbortController().signal;
const enterAll = (running: Running, org: string, count: number, gone = here): Promise<Run | null>[] =>
  Array.from({ length: count }, () => running.enter(org, `${org}_user`, gone));
const leaveAll = async (runs: Promise<Run | null>[]): Promise<void> => {
  for (const run of await Promise.all(runs)) run?.leave();
};

describe('queries that run', () => {
  it('queries wait while their organization has its maximum running, and begin in their order', async () => {
    const running = new Running();
    const first = enterAll(running, 'a', RUNNING_ORG_MAX);
    const order: number[] = [];
    const later = [1, 2].map((n) =>
      running.enter('a', 'u', here).then((run) => {
        order.push(n);
        return run;
      }),
    );
    await Promise.all(first);
    expect(order).toEqual([]);
    await leaveAll(first);
    await leaveAll(later);
    expect(order).toEqual([1, 2]);
  });

  it('queries of one organization leave room for others, up to the maximum of all', async () => {
    const running = new Running();
    const all = ['a', 'b', 'c'].flatMap((org) => enterAll(running, org, RUNNING_ORG_MAX));
    expect((await Promise.all(all)).length).toBe(RUNNING_MAX);
    const gone = new AbortController();
    const beyond = running.enter('d', 'u', gone.signal);
    (await all[0])?.leave();
    const began = await beyond;
    expect(began).not.toBeNull();
    began?.leave();
    await leaveAll(all.slice(1));
  });

  it('the organization with the fewest running queries begins first, however many queries of others wait', async () => {
    const running = new Running();
    const full = ['a', 'b', 'c'].flatMap((org) => enterAll(running, org, RUNNING_ORG_MAX));
    await Promise.all(full);
    const began: string[] = [];
    const gone = new AbortController();
    const waiting = ['a', 'b', 'c', 'd'].flatMap((org) =>
      enterAll(running, org, org === 'd' ? 1 : WAITING_ORG_MAX, gone.signal).map((run) =>
        run.then((entered) => {
          if (entered !== null) began.push(org);
          return entered;
        }),
      ),
    );
    (await full[0])?.leave();
    await waiting.at(-1);
    expect(began).toEqual(['d']);
    gone.abort();
    await leaveAll([...full.slice(1), ...waiting]);
  });

  it('queries are rejected when too many wait, and give up their place when the caller disconnects', async () => {
    const running = new Running();
    const first = enterAll(running, 'a', RUNNING_ORG_MAX);
    const gone = new AbortController();
    const waiting = enterAll(running, 'a', WAITING_ORG_MAX, gone.signal);
    expect(await running.enter('a', 'u', here)).toBeNull();
    gone.abort();
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => null));
    await leaveAll(first);
    const [again] = enterAll(running, 'a', 1);
    expect(await again).not.toBeNull();
  });

  it('the queries of a deleted user are cancelled, running or waiting, and no others', async () => {
    const running = new Running();
    const mine = await running.enter('a', 'mine', here);
    const others = await running.enter('a', 'other', here);
    const more = await Promise.all(enterAll(running, 'a', RUNNING_ORG_MAX - 2));
    const waiting = running.enter('a', 'mine', here);
    running.cancel('mine');
    expect(await waiting).toBeNull();
    expect([mine, others, ...more].map((run) => run?.signal.aborted)).toEqual([true, false, ...more.map(() => false)]);
  });

  it('a query that ends is counted once, however often it reports that', async () => {
    const running = new Running();
    const runs = await Promise.all(enterAll(running, 'a', RUNNING_ORG_MAX));
    runs[0]?.leave();
    runs[0]?.leave();
    expect(await running.enter('a', 'u', here)).not.toBeNull();
    const gone = new AbortController();
    const beyond = running.enter('a', 'u', gone.signal);
    gone.abort();
    expect(await beyond).toBeNull();
  });
});
