import { expect, it } from 'vitest';
import { hasEngineRoom } from '../../../api/telemetry/analysts/engine_room.ts';
import { ENGINE_ORG_MAX } from '../../../sql/analysts/org_views.ts';

const never = new AbortController().signal;

it('waits until the engine has ended the queries of an organization that were cancelled', async () => {
  const counts = [ENGINE_ORG_MAX + 1, ENGINE_ORG_MAX, ENGINE_ORG_MAX - 1];
  expect(await hasEngineRoom({ countInEngine: () => Promise.resolve(counts.shift() ?? NaN) }, 'org_a', never)).toBe(
    true,
  );
  expect(counts).toEqual([]);
});

it('gives up after the longest wait, while the engine goes on with as many as one organization may have', async () => {
  const deps = { countInEngine: () => Promise.resolve(ENGINE_ORG_MAX), waitMsMax: 300 };
  expect(await hasEngineRoom(deps, 'org_a', never)).toBe(false);
});

it('ends its wait with its caller', async () => {
  const gone = new AbortController();
  const waiting = hasEngineRoom({ countInEngine: () => Promise.resolve(ENGINE_ORG_MAX) }, 'org_a', gone.signal);
  gone.abort();
  await expect(waiting).rejects.toThrow();
});
