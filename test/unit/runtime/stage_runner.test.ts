import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { createStageRunner, type StageObserver } from '../../../pipeline/worker/stage_runner.ts';
import type { DeadEvent } from '../../../pipeline/flow.ts';
import type { LogPosition, Stage } from '../../../pipeline/stage.ts';

type Item = LogPosition & { fate: 'emit' | 'drop' | 'dead' | 'throw' };
const silent = createLogger('test', 'silent');
const counting = () => {
  const counts = { emitted: 0, dropped: 0, dead: 0 };
  const observer: StageObserver = {
    batch: (_stage, _seconds, _received, emitted) => (counts.emitted += emitted),
    dropped: (_stage, _reason, count) => (counts.dropped += count),
    dead: (_stage, _reason, count) => (counts.dead += count),
    sampled: () => undefined,
  };
  return { counts, observer };
};
const stage: Stage<Item, Item> = {
  name: 'decode',
  run: (batch) =>
    batch.map((item) => {
      if (item.fate === 'throw') throw new Error('bug');
      if (item.fate === 'drop') return { kind: 'drop', reason: 'duplicate' };
      if (item.fate === 'dead') return { kind: 'dead', reason: 'decode_failed', detail: 'no' };
      return { kind: 'emit', out: item };
    }),
};

describe('stage runner', () => {
  it('the stage runner accounts for every input exactly once, in order, whatever the stage does with its neighbours', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('emit', 'drop', 'dead', 'throw')), async (fates) => {
        const { counts, observer } = counting();
        const batch = fates.map((fate, log_index): Item => ({ fate, partition: 0, log_seq: 1, log_index }));
        const dead: DeadEvent[] = [];
        const out = await createStageRunner(observer, silent).run(stage, batch, dead);
        const of = (...kinds: Item['fate'][]) =>
          batch.filter(({ fate }) => kinds.includes(fate)).map(({ log_index }) => log_index);
        expect(out.map(({ log_index }) => log_index)).toEqual(of('emit'));
        expect(dead.map(({ position }) => position.log_index)).toEqual(of('dead', 'throw'));
        expect(counts).toEqual({
          emitted: of('emit').length,
          dropped: of('drop').length,
          dead: of('dead', 'throw').length,
        });
      }),
    );
  });

  it('the stage runner rejects a stage that forgets an input: each is dead-lettered, none is lost', async () => {
    const { observer } = counting();
    const dead: DeadEvent[] = [];
    const forgetful: Stage<Item, Item> = { name: 'decode', run: () => [] };
    const batch = [0, 1].map((log_index): Item => ({ fate: 'emit', partition: 0, log_seq: 1, log_index }));
    expect(await createStageRunner(observer, silent).run(forgetful, batch, dead)).toEqual([]);
    expect(dead.map(({ reason }) => reason)).toEqual(['internal_error', 'internal_error']);
  });

  it('the stage runner waits for what a stage fetches, and retries when it is unavailable', async () => {
    const { observer } = counting();
    let tries = 0;
    const fetching: Stage<Item, Item> = {
      ...stage,
      prefetch: () => {
        tries += 1;
        return tries < 3 ? Promise.reject(new Error('away')) : Promise.resolve();
      },
    };
    await createStageRunner(observer, silent).run(
      fetching,
      [{ fate: 'emit', partition: 0, log_seq: 1, log_index: 0 }],
      [],
    );
    expect(tries).toBe(3);
  });
});
