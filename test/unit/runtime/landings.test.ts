// The landings of batches in two lanes: what waits for what, and when a batch is settled.
import { describe, expect, it } from 'vitest';
import { emptyUnit, type LandingUnit, type RefusedRow } from '../../../pipeline/landing/lander.ts';
import { LIMITS } from '../../../pipeline/limits.ts';
import { Landings } from '../../../pipeline/worker/landings.ts';
import type { PartitionState } from '../../../pipeline/worker/partition_state.ts';
import type { Prepared } from '../../../pipeline/worker/prepare.ts';

/** A lander whose landings end when the test says so. */
class HeldLander {
  readonly begun: { name: string; end: (refused?: RefusedRow[]) => void; fail: (error: Error) => void }[] = [];
  readonly names = new Map<LandingUnit, string>();

  land(unit: LandingUnit): Promise<RefusedRow[]> {
    const { promise, resolve, reject } = Promise.withResolvers<RefusedRow[]>();
    const name = this.names.get(unit) ?? unit.traces.map(({ key }) => key).join('+');
    this.begun.push({
      name,
      end: (refused = []) => {
        resolve(refused);
      },
      fail: reject,
    });
    return promise;
  }

  /** Ends the landing of a unit. */
  async end(name: string, refused: RefusedRow[] = []): Promise<void> {
    this.begun.find((one) => one.name === name)?.end(refused);
    await turns();
  }

  get all(): string[] {
    return this.begun.map(({ name }) => name);
  }
}

/** Lets everything go on that waits for nothing but other promises and timers of no duration. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

interface World {
  landings: Landings;
  lander: HeldLander;
  state: PartitionState;
  done: string[];
  batch: (name: string, bulkOrg?: string) => Prepared;
}

function aWorld(): World {
  const lander = new HeldLander();
  const done: string[] = [];
  let now = 0;
  const state = { landed_through: 0, settled_through: 0, completed_through: 0, landed_at: 0 } as PartitionState;
  const landings = new Landings({
    lander,
    ownership: { isOwner: () => true },
    publisher: {
      publishEvents: (events) => {
        done.push(...events.map(({ trace_id }) => `event ${trace_id}`));
        return Promise.resolve();
      },
      enqueueTasks: () => Promise.resolve(),
      deadLetter: (entries) => {
        done.push(...entries.map(({ dead }) => `letter ${dead.detail}`));
        return Promise.resolve();
      },
    },
    lanes: { landed: (orgs) => void done.push(`lane left by ${[...orgs].join()}`) },
    reportLanded: ({ progress }) => void done.push(`reported ${progress[0]?.landed_through ?? 0}`),
    now: () => now,
    sleep: (ms) => {
      now += ms;
      return Promise.resolve();
    },
  });
  let through = 0;
  const unit = (name: string): LandingUnit => {
    const rows = emptyUnit();
    lander.names.set(rows, name);
    rows.traces.push({ wire: '', partition: 0, epoch: 1, log_seq: through, key: name, event: null });
    return rows;
  };
  const eventOf = (org_id: string, trace_id: string): Prepared['events'][number] => ({
    event: 'trace.completed',
    org_id,
    trace_id,
    payload: { event: 'trace.completed' },
    partition: 0,
  });
  return {
    landings,
    lander,
    state,
    done,
    batch: (name, bulkOrg) => {
      through += 1;
      return {
        rows: unit(name),
        bulk: bulkOrg === undefined ? null : { rows: unit(`${name} bulk`), orgs: new Set([bulkOrg]) },
        usage: [],
        deadLetters: [],
        events: [
          eventOf('quiet', `${name} of quiet`),
          ...(bulkOrg === undefined ? [] : [eventOf(bulkOrg, `${name} of ${bulkOrg}`)]),
        ],
        tasks: [],
        progress: [
          { state, landed_through: through, settled_through: through, completed_through: through, heard_at: through },
        ],
        replaces: false,
        count: 0,
      };
    },
  };
}

describe('Landings', () => {
  it('lands further batches in the express lane while the rows of one wait in the bulk lane', async () => {
    const { landings, lander, state, done, batch } = aWorld();
    await landings.add(batch('1', 'noisy'), 10);
    await lander.end('1');
    await landings.add(batch('2'), 10);
    expect(lander.all).toEqual(['1', '1 bulk', '2']);
    await lander.end('2');
    expect(done).toEqual(['event 1 of quiet', 'event 2 of quiet']);
    expect(state.landed_through).toBe(0);
  });

  it('counts the positions of a batch once both lanes have landed it and the batches before it', async () => {
    const { landings, lander, state, done, batch } = aWorld();
    await landings.add(batch('1', 'noisy'), 10);
    await lander.end('1');
    await landings.add(batch('2'), 10);
    await lander.end('2');
    expect([state.landed_through, state.settled_through, state.completed_through]).toEqual([0, 0, 0]);
    await lander.end('1 bulk');
    expect([state.landed_through, state.settled_through, state.completed_through]).toEqual([2, 2, 2]);
    expect(done.filter((one) => one.startsWith('reported'))).toEqual(['reported 1', 'reported 2']);
    expect(done).toContain('event 1 of noisy');
    await landings.settled;
  });

  it('begins a landing in the bulk lane only after that of the batch in the express lane, because usage is there', async () => {
    const { landings, lander, batch } = aWorld();
    await landings.add(batch('1', 'noisy'), 10);
    await turns();
    expect(lander.all).toEqual(['1']);
    await lander.end('1');
    expect(lander.all).toEqual(['1', '1 bulk']);
  });

  it('lands what waits in the bulk lane together, after what came before', async () => {
    const { landings, lander, state, batch } = aWorld();
    for (const name of ['1', '2', '3']) {
      await landings.add(batch(name, 'noisy'), 10);
      await lander.end(name);
    }
    expect(lander.all).toEqual(['1', '1 bulk', '2', '3']);
    await lander.end('1 bulk');
    expect(lander.all.at(-1)).toBe('2 bulk+3 bulk');
    expect(state.landed_through).toBe(1);
    await lander.end('2 bulk+3 bulk');
    expect(state.landed_through).toBe(3);
  });

  it('dead-letters what the store refuses in either lane', async () => {
    const { landings, lander, done, batch } = aWorld();
    const refused = (detail: string): RefusedRow[] => [
      { row: { wire: '', partition: 0, epoch: 1, log_seq: 1, key: '', event: null }, table: 'spans', detail },
    ];
    await landings.add(batch('1', 'noisy'), 10);
    await lander.end('1', refused('express'));
    await lander.end('1 bulk', refused('bulk'));
    expect(done.filter((one) => one.startsWith('letter'))).toEqual(['letter spans: express', 'letter spans: bulk']);
  });

  it('waits while the batches that are not settled hold too many bytes', async () => {
    const { landings, lander, batch } = aWorld();
    await landings.add(batch('1', 'noisy'), LIMITS.unsettled_bytes_max);
    await lander.end('1');
    const added = landings.add(batch('2'), 10);
    await turns();
    expect(lander.all).toEqual(['1', '1 bulk']);
    await lander.end('1 bulk');
    await added;
    expect(lander.all).toEqual(['1', '1 bulk', '2']);
  });

  it('rejects what waits for the batches when one cannot be settled, and counts none of its positions', async () => {
    const { landings, lander, state, batch } = aWorld();
    await landings.add(batch('1', 'noisy'), 10);
    await lander.end('1');
    lander.begun.at(-1)?.fail(new Error('a fault'));
    await expect(landings.settled).rejects.toThrow('a fault');
    expect(state.landed_through).toBe(0);
  });
});
