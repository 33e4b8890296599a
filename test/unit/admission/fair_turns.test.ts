import { beforeEach, describe, expect, it } from 'vitest';
import { errorOf } from '../../../api/admission/decision.ts';
import {
  ACTIVE_MS,
  BURST_MS,
  FairTurns,
  QUANTUM_BYTES,
  REJECTED_WEIGHT,
  TIME_SHARE,
  TURN_WAIT_MS_MAX,
} from '../../../api/admission/fair_turns.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const LARGE = QUANTUM_BYTES * 4;

/** Does the work of parsing a body when it is its turn, as a request does. */
function run<T>(turns: FairTurns, org_id: string, bytes: number, work: () => T): T | Promise<T> {
  const decision = turns.decide({ org_id, bytes });
  if (decision.kind === 'reject') throw errorOf(decision);
  if (decision.kind === 'admit') return turns.timed(org_id, work);
  return decision.decided.then((decided) => {
    if (decided.kind === 'reject') throw errorOf(decided);
    return turns.timed(org_id, work);
  });
}

/** Takes turns for bodies of (org, bytes); writes down which of them are let go, in order. */
function takeAll(turns: FairTurns, bodies: readonly (readonly [org: string, bytes: number])[]): string[] {
  const gone: string[] = [];
  for (const [org, bytes] of bodies) {
    const ran = run(turns, org, bytes, () => gone.push(org));
    if (typeof ran !== 'number')
      ran.catch((error: unknown) => gone.push(`${org}: ${(error as { code: string }).code}`));
  }
  return gone;
}

describe('turns on the event loop', () => {
  it('let a large body pass at once where nothing else is there', () => {
    expect(run(new FairTurns(), 'a', LARGE, () => 'checked')).toBe('checked');
  });

  it('one large body is served for each turn of the event loop', async () => {
    const gone = takeAll(
      new FairTurns(),
      Array.from({ length: 4 }, () => ['a', LARGE] as const),
    );
    const seen = [gone.length];
    for (let at = 0; at < 3; at += 1) {
      await turn();
      seen.push(gone.length);
    }
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  it('small bodies of others pass at once beside large ones', () => {
    const turns = new FairTurns();
    takeAll(turns, [
      ['noisy', LARGE],
      ['noisy', LARGE],
      ['noisy', LARGE],
    ]);
    expect(takeAll(turns, [['quiet', 2000]])).toEqual(['quiet']);
    expect(takeAll(turns, [['quiet', 2000]])).toEqual(['quiet']);
  });

  it('organizations are served in rotation, each in its own order', async () => {
    const turns = new FairTurns();
    const gone = takeAll(turns, [
      ['a', LARGE],
      ['a', LARGE],
      ['a', LARGE],
      ['b', LARGE],
      ['b', LARGE],
    ]);
    while (gone.length < 5) await turn();
    expect(gone).toEqual(['a', 'a', 'b', 'a', 'b']);
  });

  it('an organization gets many small bodies a turn, up to a quantum', async () => {
    const gone = takeAll(
      new FairTurns(),
      Array.from({ length: 12 }, () => ['a', QUANTUM_BYTES / 4] as const),
    );
    expect(gone).toHaveLength(4);
    await turn();
    expect(gone).toHaveLength(8);
    await turn();
    expect(gone).toHaveLength(12);
  });

  it("a request that waited too long is rejected without taking the next one's turn", async () => {
    let now = 0;
    const turns = new FairTurns(() => now);
    const gone = takeAll(turns, [
      ['a', LARGE],
      ['a', LARGE],
      ['a', LARGE],
    ]);
    now = TURN_WAIT_MS_MAX + 1;
    void run(turns, 'b', LARGE, () => gone.push('b'));
    await turn();
    await turn();
    expect(gone).toEqual(['a', 'b', 'a: rate_limited', 'a: rate_limited']);
  });

  it('no state remains of an organization without requests', async () => {
    const turns = new FairTurns();
    const gone = takeAll(turns, [
      ['a', LARGE],
      ['a', LARGE],
    ]);
    while (gone.length < 2) await turn();
    await turn();
    expect(takeAll(turns, [['a', LARGE]])).toEqual(['a']);
  });

  it('errors of a check are passed on, at once and after a wait', async () => {
    const turns = new FairTurns();
    const bad = (): never => {
      throw new Error('bad body');
    };
    expect(() => run(turns, 'a', LARGE, bad) as unknown).toThrow('bad body');
    await expect(run(turns, 'a', LARGE, bad)).rejects.toThrow('bad body');
  });
});

describe('the time of the loop', () => {
  const COST_MS = 10;
  let now = 0;
  let turns = new FairTurns();

  beforeEach(() => {
    now = 0;
    turns = new FairTurns(() => now);
  });

  /** Checks a small body that takes `ms` milliseconds. */
  const check = (org: string, ms: number): unknown =>
    run(turns, org, 100, () => {
      now += ms;
      return 'checked';
    });
  /** Spends more than may be used at once. */
  const spend = (org: string): void => {
    for (let spent = 0; spent <= BURST_MS; spent += COST_MS) check(org, COST_MS);
  };

  it('loop time is not counted for an organization that is alone', async () => {
    for (let at = 0; at < 5; at += 1) {
      spend('a');
      await turn();
    }
    expect(check('a', COST_MS)).toBe('checked');
  });

  it('loop time is shared while others send too: an organization that used its share waits', async () => {
    check('quiet', 0);
    spend('noisy');
    await turn();
    const waits = check('noisy', COST_MS);
    expect(waits).toBeInstanceOf(Promise);
    expect(check('quiet', 1)).toBe('checked');
    now += COST_MS / TIME_SHARE;
    await expect(waits).resolves.toBe('checked');
  });

  it('rejections use up loop time sooner', async () => {
    const refuse = (org: string, ms: number): void => {
      const ran = (): unknown =>
        run(turns, org, 100, () => {
          now += ms;
          throw new Error('bad body');
        });
      expect(ran).toThrow('bad body');
    };
    check('quiet', 0);
    check('good', BURST_MS / REJECTED_WEIGHT);
    check('good', 1);
    refuse('bad', BURST_MS / REJECTED_WEIGHT);
    refuse('bad', 1);
    await turn();
    expect(check('good', COST_MS)).toBe('checked');
    const waits = check('bad', COST_MS);
    expect(waits).toBeInstanceOf(Promise);
    now += REJECTED_WEIGHT / TIME_SHARE;
    await expect(waits).resolves.toBe('checked');
  });

  it('loop time recovers as time passes', async () => {
    check('quiet', 0);
    spend('noisy');
    await turn();
    now += (2 * BURST_MS) / TIME_SHARE;
    check('quiet', 0);
    expect(check('noisy', COST_MS)).toBe('checked');
  });

  it('loop time is owed only as long as others are present', async () => {
    check('quiet', 0);
    check('noisy', ACTIVE_MS / 2);
    await turn();
    now += ACTIVE_MS + 1;
    expect(check('noisy', COST_MS)).toBe('checked');
  });

  it('a request that waits too long for loop time is rejected', async () => {
    check('quiet', 0);
    check('noisy', BURST_MS + TURN_WAIT_MS_MAX);
    await turn();
    const waits = check('noisy', COST_MS);
    check('quiet', 0);
    await turn();
    now += TURN_WAIT_MS_MAX + 1;
    // No request arrives any more, and the waiting one is rejected all the same.
    await expect(waits).rejects.toMatchObject({ code: 'rate_limited' });
  });
});
