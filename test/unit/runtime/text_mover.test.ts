// The text mover after a move's answer was lost: the statement may still run, and nothing may be
// moved beside it.
import { expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { type RecentPart, TextMover, type TextStore } from '../../../pipeline/landing/text_mover.ts';
import { eventually } from '../../support/wait.ts';

const part: RecentPart = { name: 'all_1_1_0', rows: 10, bytes: 1000, age_seconds: 60, log_seq_min: 1 };

it('the text mover raises its fence again before it retries a move', async () => {
  const calls: string[] = [];
  let parts = [part];
  const store: TextStore = {
    recentParts: () => Promise.resolve(parts),
    takeMoverFence: () => {
      const epoch = calls.filter((call) => call.startsWith('fence')).length + 1;
      calls.push(`fence ${epoch}`);
      return Promise.resolve(epoch);
    },
    move: (_parts, epoch) => {
      calls.push(`move ${epoch}`);
      return epoch === 1 ? Promise.reject(new Error('socket hang up')) : Promise.resolve(true);
    },
    dropPart: (name) => {
      calls.push(`drop ${name}`);
      parts = [];
      return Promise.resolve();
    },
  };
  const mover = new TextMover({
    store,
    workerId: 'w1',
    logger: createLogger('test', 'silent'),
    isLeader: () => true,
    sync: () => Promise.resolve(),
    observe: () => undefined,
  });
  mover.start();
  await eventually(() => parts.length === 0);
  await mover.stop();
  expect(calls).toEqual(['fence 1', 'move 1', 'fence 2', 'move 2', 'drop all_1_1_0']);
});
