import { describe, expect, it } from 'vitest';
import { FairSlots } from '../../../ops/platform/fair_slots.ts';

const never = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Tasks that run until the test ends them. */
function controlled(slots: FairSlots) {
  const running: { org: string; end: () => void }[] = [];
  const begin = (org: string, signal: AbortSignal = never) =>
    slots.run(org, signal, async () => {
      await new Promise<void>((resolve) => running.push({ org, end: resolve }));
    });
  return { running, begin };
}

describe('fair slots', () => {
  it('fair slots hold no more than an organization and all together may have', async () => {
    const slots = new FairSlots({ totalMax: 3, orgMax: 2 });
    const { running, begin } = controlled(slots);
    const all = ['a', 'a', 'a', 'b', 'b'].map((org) => begin(org));
    await turn();
    expect(running.map(({ org }) => org)).toEqual(['a', 'a', 'b']);
    expect(slots.taken).toBe(3);
    for (let ended = 0; ended < 5; ended++) {
      running[ended]?.end();
      await turn();
      expect(slots.taken).toBeLessThanOrEqual(3);
    }
    await Promise.all(all);
    expect(slots.taken).toBe(0);
  });
  it('fair slots serve organizations in turn: thousands of one delay another by one', async () => {
    const slots = new FairSlots({ totalMax: 1, orgMax: 1 });
    const { running, begin } = controlled(slots);
    for (let i = 0; i < 5000; i++) void begin('loud');
    void begin('quiet');
    await turn();
    running[0]?.end();
    await turn();
    running[1]?.end();
    await turn();
    expect(running.slice(0, 3).map(({ org }) => org)).toContain('quiet');
  });
  it('fair slots forget a task aborted while waiting', async () => {
    const slots = new FairSlots({ totalMax: 1, orgMax: 1 });
    const { running, begin } = controlled(slots);
    const abort = new AbortController();
    void begin('a');
    const gone = begin('a', abort.signal);
    const next = begin('a');
    abort.abort(new Error('no longer'));
    await expect(gone).rejects.toThrow('no longer');
    running[0]?.end();
    await turn();
    expect(running).toHaveLength(2);
    running[1]?.end();
    await next;
    expect(slots.taken).toBe(0);
  });
  it('fair slots release the place when a task fails', async () => {
    const slots = new FairSlots({ totalMax: 1, orgMax: 1 });
    await expect(slots.run('a', never, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(await slots.run('a', never, () => Promise.resolve(1))).toBe(1);
  });
});
