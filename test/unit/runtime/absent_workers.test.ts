// A worker counts as gone when it has had no connection for long enough, and at no other time.
import { expect, it } from 'vitest';
import { ABSENT_MS, AbsentWorkers, LOOKED_AT_MAX } from '../../../pipeline/worker/absent_workers.ts';

const heard = (worker_id: string, heard_at = 0) => ({ worker_id, heard_at });

/** Workers of whom `absent` have no connection; `asked` lists for whom the server was asked. */
function lookingFrom(worker: string): { absent: Set<string>; asked: string[]; workers: AbsentWorkers } {
  const absent = new Set<string>();
  const asked: string[] = [];
  const workers = new AbsentWorkers(worker, (of) => {
    asked.push(of);
    return Promise.resolve(absent.has(of));
  });
  return { absent, asked, workers };
}

it('counts a worker as gone that was absent in every look for long enough', async () => {
  const { absent, workers } = lookingFrom('w1');
  absent.add('w2');
  const both = [heard('w1'), heard('w2'), heard('w3')];
  expect(await workers.look(both, 1000)).toEqual([]);
  expect(workers.isSuspecting).toBe(true);
  expect(await workers.look(both, 999 + ABSENT_MS)).toEqual([]);
  expect(await workers.look(both, 1000 + ABSENT_MS)).toEqual(['w2']);
  expect(workers.isSuspecting).toBe(false);
});

it('counts a worker as live that has reconnected in between', async () => {
  const { absent, workers } = lookingFrom('w1');
  const both = [heard('w1'), heard('w2')];
  absent.add('w2');
  await workers.look(both, 1000);
  absent.clear();
  await workers.look(both, 1250);
  absent.add('w2');
  expect(await workers.look(both, 1000 + ABSENT_MS)).toEqual([]);
  expect(await workers.look(both, 1000 + 2 * ABSENT_MS)).toEqual(['w2']);
});

it('counts a worker as live whose heartbeats arrive, whatever the server answers', async () => {
  const { absent, workers } = lookingFrom('w1');
  absent.add('w2');
  for (let now = 1000; now < 10_000; now += 250)
    expect(await workers.look([heard('w1', now), heard('w2', now - (now % 500))], now)).toEqual([]);
});

it('begins to count again after a time in which this worker could see nothing', async () => {
  const { absent, workers } = lookingFrom('w1');
  absent.add('w2');
  const both = [heard('w1'), heard('w2')];
  await workers.look(both, 1000);
  workers.excuseAll();
  expect(await workers.look(both, 1000 + ABSENT_MS)).toEqual([]);
  expect(await workers.look(both, 1000 + 2 * ABSENT_MS)).toEqual(['w2']);
});

it('asks for a bounded number of workers, of each by others, and for all that are silent', async () => {
  const names = Array.from({ length: 30 }, (_, number) => `w${10 + number}`);
  const counts = new Map<string, number>();
  for (const name of names) {
    const { asked, workers } = lookingFrom(name);
    await workers.look(
      names.map((worker) => heard(worker, 1000)),
      1100,
    );
    expect(asked).toHaveLength(LOOKED_AT_MAX);
    for (const of of asked) counts.set(of, (counts.get(of) ?? 0) + 1);
  }
  expect([...new Set(counts.values())]).toEqual([LOOKED_AT_MAX]);
  expect(counts.size).toBe(names.length);
  const { asked, workers } = lookingFrom('w10');
  await workers.look(
    names.map((worker) => heard(worker, worker === 'w35' ? 1000 : 3000)),
    3100,
  );
  expect(asked).toContain('w35');
});
