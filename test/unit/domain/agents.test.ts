import { describe, expect, it } from 'vitest';
import { archived, driftOf, newAgent, registeredAgain, statusOf } from '../../../pipeline/domain/agents/agent_life.ts';
import { agentKey, parseAgentRecord, type AgentRecord } from '../../../schemas/records/agent.ts';
import { agentIdOf, hashToken } from '../../../api/control/agents/tokens.ts';

const DAY = 86_400_000;
const T0 = Date.parse('2026-01-01T00:00:00.000Z');
const iso = (ms: number): string => new Date(ms).toISOString();

const anAgent = (over: Partial<AgentRecord> = {}): AgentRecord => ({
  ...newAgent(
    { org_id: 'org_a', agent_id: 'a1', register_token_hash: 'h' },
    { name: 'Bot', framework: 'chain', version: '1', repo_url: 'https://x', tags: ['t'], metadata: { team: 'red' } },
    T0,
  ),
  ...over,
});

describe('a registration', () => {
  it('a registration begins with empty fields for everything not given', () => {
    expect(newAgent({ org_id: 'o', agent_id: 'a', register_token_hash: 'h' }, { name: 'N' }, T0)).toEqual({
      org_id: 'o',
      agent_id: 'a',
      name: 'N',
      framework: null,
      version: null,
      repo_url: null,
      tags: [],
      metadata: {},
      registered_at: iso(T0),
      updated_at: iso(T0),
      archived_at: null,
      deprecated_at: null,
      register_token_hash: 'h',
    });
  });

  it('a repeated registration replaces given fields, keeps omitted ones, and clears those that are null', () => {
    const again = registeredAgain(anAgent(), { name: 'Bot 2', version: null, metadata: {}, tags: undefined }, T0 + DAY);
    expect(again).toEqual(anAgent({ name: 'Bot 2', version: null, metadata: {}, updated_at: iso(T0 + DAY) }));
  });

  it('a repeated registration without a difference changes nothing', () => {
    expect(registeredAgain(anAgent(), { name: 'Bot' }, T0 + DAY)).toBeNull();
    expect(registeredAgain(anAgent(), { name: 'Bot', tags: ['t'], metadata: { team: 'red' } }, T0 + DAY)).toBeNull();
  });

  it('a registration revives an archived or deprecated agent', () => {
    for (const gone of [{ archived_at: iso(T0) }, { deprecated_at: iso(T0) }])
      expect(registeredAgain(anAgent(gone), { name: 'Bot' }, T0 + DAY)).toEqual(anAgent({ updated_at: iso(T0 + DAY) }));
  });
});

describe('archiving', () => {
  it('archiving takes effect once', () => {
    const gone = archived(anAgent(), T0 + DAY);
    expect(gone).toEqual(anAgent({ archived_at: iso(T0 + DAY), updated_at: iso(T0 + DAY) }));
    expect(gone === null ? gone : archived(gone, T0 + 2 * DAY)).toBeNull();
  });
});

describe('drift', () => {
  const now = T0 + 200 * DAY;
  it.each([
    ['never heard of since its registration long ago', anAgent(), 0, 'deprecate'],
    ['heard of 91 days ago', anAgent(), now - 91 * DAY, 'deprecate'],
    ['heard of 90 days ago to the millisecond', anAgent(), now - 90 * DAY, null],
    ['heard of 90 days and a millisecond ago', anAgent(), now - 90 * DAY - 1, 'deprecate'],
    ['registered again lately', anAgent({ updated_at: iso(now - DAY) }), 0, null],
    ['archived', anAgent({ archived_at: iso(T0) }), 0, null],
    ['deprecated and silent', anAgent({ deprecated_at: iso(T0 + 95 * DAY) }), 0, null],
    ['deprecated and heard of since', anAgent({ deprecated_at: iso(T0 + 95 * DAY) }), T0 + 96 * DAY, 'revive'],
    ['deprecated and heard of lately', anAgent({ deprecated_at: iso(now) }), now - DAY, 'revive'],
    ['deprecated, archived and heard of', anAgent({ deprecated_at: iso(T0), archived_at: iso(T0) }), now, null],
  ] as const)('an agent is checked for drift: %s', (_what, agent, lastSeen, verdict) => {
    expect(driftOf(agent, lastSeen, now)).toBe(verdict);
  });

  it('drift deprecates an agent until it sends an event', () => {
    const agent = anAgent({ deprecated_at: iso(T0 + 95 * DAY) });
    expect([statusOf(agent, 0), statusOf(agent, T0 + 95 * DAY), statusOf(agent, T0 + 95 * DAY + 1)]).toEqual([
      'deprecated',
      'deprecated',
      'registered',
    ]);
    expect(statusOf({ ...agent, archived_at: iso(T0) }, T0 + 99 * DAY)).toBe('archived');
  });
});

describe('a stored agent', () => {
  it('a stored agent with an invalid field is rejected', () => {
    const good = anAgent();
    expect(parseAgentRecord(JSON.stringify(good))).toEqual(good);
    for (const bad of [
      { name: null },
      { framework: 'cobol' },
      { tags: [1] },
      { archived_at: 'today' },
      { metadata: [] },
    ])
      expect(() => parseAgentRecord(JSON.stringify({ ...good, ...bad }))).toThrow(Object.keys(bad)[0]);
  });

  it('a stored agent has a key of characters that KV accepts, whatever its ids are', () => {
    const keys = [
      agentKey('org.a', 'b'),
      agentKey('org', 'a.b'),
      agentKey('org', 'ä 漢 * > $'),
      agentKey('org', '.'),
      agentKey('orga', '.b'),
    ];
    for (const key of keys) expect(key).toMatch(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('an id made of a token', () => {
  it('an id made from a token is a UUID, the same for the same token and another for another', () => {
    const ids = ['rt_one', 'rt_two', 'rt_one'].map((token) => agentIdOf(hashToken(token)));
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect([ids[0] === ids[2], ids[0] === ids[1]]).toEqual([true, false]);
  });
});
