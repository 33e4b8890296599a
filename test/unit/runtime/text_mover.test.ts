// The text mover: what it does when a move's answer was lost or not all rows were copied, and when it
// does its background work.
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import {
  type BackgroundWork,
  chooseParts,
  type Moved,
  type Progress,
  type RecentPart,
  TextMover,
  type TextStore,
} from '../../../pipeline/landing/text_mover.ts';
import { eventually } from '../../support/wait.ts';

const part: RecentPart = { name: 'all_1_1_0', rows: 10, bytes: 1000, age_seconds: 60 };
const MOVED: Moved = { copied: 10, parts: [part] };

/** A store with the given parts, which records its calls. */
class Recorder implements TextStore {
  readonly calls: string[] = [];
  parts: RecentPart[];
  #epoch = 0;
  readonly #move: (epoch: number) => Promise<Moved | null>;

  constructor(parts: RecentPart[], move: (epoch: number) => Promise<Moved | null> = () => Promise.resolve(MOVED)) {
    this.parts = parts;
    this.#move = move;
  }

  recentParts(): Promise<RecentPart[]> {
    return Promise.resolve(this.parts);
  }
  takeMoverFence(): Promise<number> {
    this.#epoch += 1;
    this.calls.push(`fence ${this.#epoch}`);
    return Promise.resolve(this.#epoch);
  }
  move(_parts: readonly RecentPart[], epoch: number): Promise<Moved | null> {
    this.calls.push(`move ${epoch}`);
    return this.#move(epoch);
  }
  dropParts(parts: readonly RecentPart[]): Promise<void> {
    for (const { name } of parts) {
      this.calls.push(`drop ${name}`);
      this.parts = this.parts.filter((kept) => kept.name !== name);
    }
    return Promise.resolve();
  }
}

/** Work whose steps make the given progress and are recorded; idle afterwards. */
function work(calls: string[], name: string, progress: (Progress | Error)[]): BackgroundWork {
  return {
    begin: (epoch) => void calls.push(`${name} begins in ${epoch}`),
    fail: () => {
      calls.push(`${name} fails`);
      return 'ended';
    },
    step: () => {
      const next = progress.shift();
      if (next === undefined) return Promise.resolve('idle');
      calls.push(name);
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
    },
  };
}

async function run(
  store: TextStore,
  until: () => boolean,
  background: readonly BackgroundWork[] = [],
  isLeader: () => boolean = () => true,
): Promise<void> {
  const mover = new TextMover({
    store,
    workerId: 'w1',
    logger: createLogger('test', 'silent'),
    isLeader,
    sync: () => Promise.resolve(),
    observe: () => undefined,
    background,
  });
  mover.start();
  await eventually(until);
  await mover.stop();
}

describe('the text mover', () => {
  it('raises its fence again before it retries a move', async () => {
    const store = new Recorder([part], (epoch) =>
      epoch === 1 ? Promise.reject(new Error('socket hang up')) : Promise.resolve(MOVED),
    );
    await run(store, () => store.parts.length === 0);
    expect(store.calls).toEqual(['fence 1', 'move 1', 'fence 2', 'move 2', 'drop all_1_1_0']);
  });

  it('drops only parts whose rows are all copied, and goes on in a new epoch if a part has lost rows', async () => {
    const lost: RecentPart = { ...part, name: 'all_2_2_0' };
    const store = new Recorder([part, lost], (epoch) => {
      if (epoch === 1) return Promise.resolve(MOVED);
      return Promise.resolve({ copied: 10, parts: [lost] });
    });
    await run(store, () => store.parts.length === 0);
    expect(store.calls).toEqual(['fence 1', 'move 1', 'drop all_1_1_0', 'fence 2', 'move 2', 'drop all_2_2_0']);
  });

  it('drops nothing once another worker has raised the fence', async () => {
    const store = new Recorder([part], (epoch) => Promise.resolve(epoch === 1 ? null : MOVED));
    await run(store, () => store.parts.length === 0);
    expect(store.calls).toEqual(['fence 1', 'move 1', 'fence 2', 'move 2', 'drop all_1_1_0']);
  });

  it('does background work only while nothing is due, a step of the second only while the first is idle', async () => {
    const store = new Recorder([part]);
    const { calls } = store;
    const [first, second] = [work(calls, 'a', ['more', 'more']), work(calls, 'b', ['more', 'idle'])];
    await run(store, () => calls.filter((call) => call === 'b').length === 2, [first, second]);
    expect(calls).toEqual([
      'fence 1',
      'a begins in 1',
      'b begins in 1',
      'move 1',
      'drop all_1_1_0',
      'a',
      'a',
      'b',
      'b',
    ]);
  });

  it('moves what becomes due between two steps of background work', async () => {
    const store = new Recorder([]);
    const { calls } = store;
    const steps = work(calls, 'a', ['more', 'more', 'more']);
    const step = steps.step.bind(steps);
    steps.step = () => {
      if (calls.filter((call) => call === 'a').length === 1 && !calls.includes('move 1')) store.parts = [part];
      return step();
    };
    await run(store, () => calls.filter((call) => call === 'a').length === 3, [steps]);
    expect(calls).toEqual(['fence 1', 'a begins in 1', 'a', 'a', 'move 1', 'drop all_1_1_0', 'a']);
  });

  it('takes a new epoch for background work that ended or failed, and leaves a failed one alone for a while', async () => {
    const store = new Recorder([]);
    const { calls } = store;
    const [first, second] = [work(calls, 'a', [new Error('memory'), 'more']), work(calls, 'b', ['ended', 'more'])];
    await run(store, () => calls.filter((call) => call === 'b').length === 2, [first, second]);
    expect(calls).toEqual([
      ...['fence 1', 'a begins in 1', 'b begins in 1', 'a', 'a fails'],
      ...['fence 2', 'a begins in 2', 'b begins in 2', 'b'],
      ...['fence 3', 'a begins in 3', 'b begins in 3', 'b'],
    ]);
  });

  it('does nothing while another worker is the leader, and takes a new epoch afterwards', async () => {
    const store = new Recorder([]);
    const { calls } = store;
    const leads = [true, false, true];
    await run(
      store,
      () => calls.includes('fence 2'),
      [work(calls, 'a', ['idle'])],
      () => leads.shift() ?? true,
    );
    expect(calls).toEqual(['fence 1', 'a begins in 1', 'a', 'fence 2', 'a begins in 2']);
  });
});

describe('the parts of a move', () => {
  const aged = (age_seconds: number, rows: number, bytes = 1000): RecentPart => ({ ...part, age_seconds, rows, bytes });

  it.each([
    ['nothing that is large and new', [aged(0, 49_999)], []],
    ['many rows at once', [aged(0, 50_000)], [0]],
    ['few rows after a second', [aged(1, 10)], [0]],
    ['any number of rows after four seconds', [aged(4, 20_000), aged(0, 1)], [0, 1]],
    ['the oldest first, as long as their bytes fit', [aged(1, 10, 900), aged(9, 10, 900), aged(5, 10, 900)], [1, 2]],
    ['the oldest even if it is larger', [aged(9, 10, 9000), aged(1, 10)], [0]],
  ])('are %s', (_what, parts, chosen) => {
    expect(chooseParts(parts, 2000)).toEqual(chosen.map((index) => parts[index]));
  });
});
