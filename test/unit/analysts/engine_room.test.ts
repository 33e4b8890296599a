import { expect, it } from 'vitest';
import { hasEngineRoom } from '../../../api/telemetry/analysts/engine_room.ts';
import { ENGINE_ORG_MAX } from '../../../sql/analysts/org_views.ts';

const never = new AbortController().signal;

it("an organization's next query waits until the engine has ended its cancelled ones", async () => {
  const counts = [ENGINE_ORG_MAX + 1, ENGINE_ORG_MAX, ENGINE_ORG_MAX - 1];
  expect(await hasEngineRoom({ countInEngine: () => Promise.resolve(counts.shift() ?? NaN) }, 'org_a', never)).toBe(
    true,
  );
  expect(counts).toEqual([]);
});

it('a query gives up after the longest wait, while the engine runs as many as one organization may have', async () => {
  const deps = { countInEngine: () => Promise.resolve(ENGINE_ORG_MAX), waitMsMax: 300 };
  expect(await hasEngineRoom(deps, 'org_a', never)).toBe(false);
});

it('a wait for the engine ends with its caller', async () => {
  const gone = new AbortController();
  const waiting = hasEngineRoom({ countInEngine: () => Promise.resolve(ENGINE_ORG_MAX) }, 'org_a', gone.signal);
  gone.abort();
  await expect(waiting).rejects.toThrow();
});
