// Words and addresses of the registry of agents and of the audit log.
import { describe, expect, it } from 'vitest';
import { daysOf } from '../../../api/portal/web/screens/agents/agent_days.ts';
import { driftWords, isDrifting } from '../../../api/portal/web/screens/agents/drift_words.ts';
import { registerCommand } from '../../../api/portal/web/screens/agents/register_command.ts';
import { AUDIT_TARGETS } from '../../../schemas/records/audit.ts';
import { agrees } from '../../../api/portal/web/screens/incidents/open_incidents.ts';
import { changesOf, targetPath, valueWords } from '../../../api/portal/web/screens/audit/audit_words.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 23);
const at = (days: number): string => new Date(NOW + days * DAY).toISOString();

describe('the state of an agent in words', () => {
  const agent = {
    status: 'registered' as const,
    last_seen_at: at(-1),
    registered_at: at(-200),
    deprecates_at: at(89),
    archived_at: null,
  };

  it('is plain while the agent sends events', () => {
    expect([driftWords(agent, NOW), isDrifting(agent, NOW)]).toEqual(['Registered', false]);
  });

  it('says for how long an agent is silent and when that deprecates it', () => {
    const silent = { ...agent, last_seen_at: at(-83), deprecates_at: at(7) };
    expect(driftWords(silent, NOW)).toBe('No events for 83 days; deprecated in 7 days');
    expect(isDrifting(silent, NOW)).toBe(true);
    expect(driftWords({ ...silent, last_seen_at: null }, NOW)).toBe(
      'No event since its registration; deprecated in 7 days',
    );
    expect(driftWords({ ...silent, deprecates_at: at(1) }, NOW)).toMatch(/deprecated in 1 day$/);
  });

  it('names the end of a registration', () => {
    expect(driftWords({ ...agent, status: 'deprecated', deprecates_at: null }, NOW)).toBe(
      'Deprecated: no events for 90 days',
    );
    const archived = { ...agent, status: 'archived' as const, archived_at: at(-2), deprecates_at: null };
    expect([driftWords(archived, NOW), isDrifting(archived, NOW)]).toEqual(['Archived 2\u00a0d ago', false]);
  });
});

it('the days of an agent are read from the rows of an analytics query', () => {
  expect(daysOf([['2026-11-01T00:00:00.000Z', 4, 1, 0.5, 120]])).toEqual([
    { day: '2026-11-01', traces: 4, failed: 1, cost_usd: 0.5, tokens: 120 },
  ]);
});

it('the command that registers an agent is safe in a shell', () => {
  const given = { origin: 'https://millrace.example', org_id: 'org a', agent_id: "it's", register_token: 'rt_1' };
  expect(registerCommand(given)).toContain(String.raw`"agent_id": "it'\''s"`);
  expect(registerCommand(given)).toContain("'https://millrace.example/orgs/org%20a/agents/register'");
  expect(registerCommand({ ...given, agent_id: null })).toContain('"agent_id": "my-agent"');
});

describe('a record of the audit log', () => {
  it('has its changes before and after, and plain values where it names no value before', () => {
    const changes = { role: { from: 'viewer', to: 'admin' }, name: 'ci', scopes: ['*'] };
    expect(changesOf({ changes })).toEqual([
      { field: 'role', from: 'viewer', to: 'admin' },
      { field: 'name', from: undefined, to: 'ci' },
      { field: 'scopes', from: undefined, to: ['*'] },
    ]);
    expect([valueWords('ci'), valueWords(['*']), valueWords(null)]).toEqual(['ci', '["*"]', 'null']);
  });

  it.each([
    ['agent', 'a/b', '/agents/a%2Fb'],
    ['webhook', 'wh_1', '/webhooks/wh_1'],
    ['prompt', 'team/answer@2', '/prompts/team%2Fanswer'],
    ['prompt', 'answer', '/prompts/answer'],
    ['budget', 'org_1', '/costs/budgets'],
    ['job', 'job_0123456789abcdef', '/jobs/job_0123456789abcdef'],
    ['job', 'agent-drift', null],
    ['judge', '', null],
    ['session', 's', null],
    ['view', 'view_1', '/traces?view=view_1'],
    ['score', 'scr_1', '/traces/trc%2F1'],
  ] as const)('leads from the target %s %j to %j', (type, id, path) => {
    expect(targetPath({ target: { type, id }, changes: { trace_id: 'trc/1' } })).toBe(path);
  });

  it('leads to a page for every kind of thing but sessions and those of the operator', () => {
    const id = 'job_0123456789abcdef';
    const without = AUDIT_TARGETS.filter(
      (type) => targetPath({ target: { type, id }, changes: { trace_id: 't' } }) === null,
    );
    expect(without).toEqual(['session', 'dead_letter', 'analyst']);
  });
});

describe('the open incidents of the list', () => {
  const incident = (name: string, day: number, status: 'open' | 'resolved' = 'open') => ({
    incident_id: name,
    status,
    opened_at: at(day),
  });
  const list = { data: [incident('new', 3), incident('old', 2)], meta: { total: 2 } };

  it.each([
    ['shows it', incident('new', 3), list, true],
    ['has it although it is resolved', incident('old', 2, 'resolved'), list, false],
    ['lacks it, as it is resolved', incident('gone', 1, 'resolved'), list, true],
    ['lacks it although it is open', incident('newest', 4), list, false],
    [
      'lacks it, as it is older than those that are shown',
      incident('oldest', 1),
      { ...list, meta: { total: 3 } },
      true,
    ],
    ['lacks it although it is the newest of many', incident('newest', 4), { ...list, meta: { total: 3 } }, false],
  ])('agree with the stream about an incident when the list %s: %#', (_, changed, open, expected) => {
    expect(agrees(open, changed)).toBe(expected);
  });
});
