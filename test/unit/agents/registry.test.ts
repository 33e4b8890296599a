// What the registry refuses before it asks its stores.
import { describe, expect, it } from 'vitest';
import { type AgentsDeps, listAgents, registerAgent } from '../../../api/control/agents/agents.ts';
import { isAgentId, listQuery, registerBody } from '../../../api/control/agents/schema.ts';
import { AgentStore } from '../../../api/control/agents/store.ts';
import { ApiError } from '../../../api/http/errors.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { KEY_CHARS_MAX } from '../../../ops/platform/nats/watched_bucket.ts';
import { agentKey } from '../../../schemas/records/agent.ts';
import { anEmptyBucket } from '../../support/kv.ts';

/** No store is asked. */
const NO_DEPS = {} as AgentsDeps;

describe.each(['cobol', '', 'x'.repeat(65), 'x'.repeat(100_000)])('a framework that nobody knows', (framework) => {
  it(`is invalid_framework, of ${framework.length} characters too`, async () => {
    const registration = registerAgent(
      NO_DEPS,
      'org_a',
      registerBody.parse({ name: 'Bot', agent_id: 'bot', framework }),
    );
    const error: unknown = await registration.catch((thrown: unknown) => thrown);
    expect([error instanceof ApiError && error.code]).toEqual(['invalid_framework']);
    const list = () => listAgents(NO_DEPS, 'org_a', listQuery.parse({ framework }));
    expect(list).toThrow(expect.objectContaining({ code: 'invalid_framework' }) as Error);
  });
});

describe('an agent that is not known here', () => {
  const open = async () => {
    const { nc, kv, asked } = anEmptyBucket();
    const log = { nc, bucket: () => Promise.resolve(kv) } as unknown as Log;
    return { store: await AgentStore.open(log, () => undefined), asked };
  };

  it.each([
    ['nothing', ''],
    ['a character too much', 'a'.repeat(129)],
    ['a whole path', 'a'.repeat(4000)],
    ['a line break', 'a\nb'],
    ['half a character', '\ud800'],
  ])('is not looked for where its id is %s', async (_what, id) => {
    const { store, asked } = await open();
    expect(await store.read('org_a', id)).toBeNull();
    expect(asked).toEqual([]);
    expect(isAgentId(id)).toBe(false);
  });

  it('is looked for under any id that an agent can have, the longest too', async () => {
    const { store, asked } = await open();
    const ids = ['bot 1/ä', 'a'.repeat(128), '😀'.repeat(128)];
    for (const id of ids) expect(await store.read('org_a', id)).toBeNull();
    expect(asked).toEqual(ids.map((id) => ['get', agentKey('org_a', id)]));
    expect(agentKey('o'.repeat(128), '😀'.repeat(128)).length).toBeLessThanOrEqual(KEY_CHARS_MAX);
  });
});
