import { describe, expect, it } from 'vitest';
import { FairTurns, QUANTUM_BYTES, TURN_WAIT_MS_MAX } from '../../../../api/ingest/fair_turns.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const LARGE = QUANTUM_BYTES * 4;

/** Takes turns for bodies of (org, bytes); writes down which of them are let go, in order. */
function takeAll(turns: FairTurns, bodies: readonly (readonly [org: string, bytes: number])[]): string[] {
  const gone: string[] = [];
  for (const [org, bytes] of bodies) {
    const waits = turns.take(org, bytes);
    if (waits === null) gone.push(org);
    else
      void waits.then(
        () => gone.push(org),
        (error: unknown) => gone.push(`${org}: ${(error as { code: string }).code}`),
      );
  }
  return gone;
}

describe('turns on the event loop', () => {
  it('let a large body pass at once where nothing else is there', () => {
    expect(new FairTurns().take('a', LARGE)).toBeNull();
  });

  it('serve one large body a turn of the loop', async () => {
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

  it('let small bodies of others pass at once beside them', () => {
    const turns = new FairTurns();
    takeAll(turns, [
      ['noisy', LARGE],
      ['noisy', LARGE],
      ['noisy', LARGE],
    ]);
    expect(turns.take('quiet', 2000)).toBeNull();
    expect(turns.take('quiet', 2000)).toBeNull();
  });

  it('serve orgs in rotation, each in its own order', async () => {
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

  it('give an org many small bodies a turn, up to a quantum', async () => {
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

  it('refuse who has waited too long, without taking the turn of the next', async () => {
    let now = 0;
    const turns = new FairTurns(() => now);
    const gone = takeAll(turns, [
      ['a', LARGE],
      ['a', LARGE],
      ['a', LARGE],
    ]);
    now = TURN_WAIT_MS_MAX + 1;
    void turns.take('b', LARGE)?.then(() => gone.push('b'));
    await turn();
    expect(gone).toEqual(['a', 'a: rate_limited', 'a: rate_limited', 'b']);
  });

  it('keep nothing of an org that is gone', async () => {
    const turns = new FairTurns();
    const gone = takeAll(turns, [
      ['a', LARGE],
      ['a', LARGE],
    ]);
    while (gone.length < 2) await turn();
    await turn();
    expect(turns.take('a', LARGE)).toBeNull();
  });
});
