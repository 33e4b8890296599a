import { describe, expect, it } from 'vitest';
import { auditableChanges, CHANGES_BYTES_MAX } from '../../../ops/exchange/audit_changes.ts';
import { type DoneMutation, eventOfMutation } from '../../../pipeline/domain/webhooks/audit_events.ts';

const mutation = (over: Partial<DoneMutation>): DoneMutation => ({
  audit_id: 'aud_1',
  org_id: 'org_a',
  actor: { type: 'user', id: 'user_1' },
  action: 'api_key.create',
  target: { type: 'api_key', id: 'ak_1' },
  changes: { name: 'ci' },
  created_at: Date.parse('2026-03-01T00:00:00Z'),
  ...over,
});

describe('the platform event of a mutation', () => {
  it.each(['api_key.create', 'api_key.revoke', 'member.invite', 'member.remove'])(
    'the mutation %s becomes an event as it is in the audit log',
    (action) => {
      const event = eventOfMutation(mutation({ action }));
      expect(event).toMatchObject({
        event: `audit.${action}`,
        org_id: 'org_a',
        created_at: Date.parse('2026-03-01T00:00:00Z'),
      });
      expect(JSON.parse(event?.payload ?? '')).toEqual({
        event: `audit.${action}`,
        org_id: 'org_a',
        audit_id: 'aud_1',
        actor: { type: 'user', id: 'user_1' },
        target: { type: 'api_key', id: 'ak_1' },
        changes: { name: 'ci' },
        created_at: '2026-03-01T00:00:00.000Z',
      });
    },
  );

  it('a created version and a moved label of a prompt become events', () => {
    const target = { type: 'prompt' as const, id: 'greet@2' };
    const created = eventOfMutation(
      mutation({ action: 'prompt.create', target, changes: { name: 'greet', version: '2', model: null } }),
    );
    expect(JSON.parse(created?.payload ?? '')).toEqual({
      event: 'prompt.created',
      org_id: 'org_a',
      name: 'greet',
      version: '2',
      model: null,
      created_at: '2026-03-01T00:00:00.000Z',
    });
    const changes = { label: 'production', version: '2', previous_version: '1' };
    const labeled = eventOfMutation(mutation({ action: 'prompt.label', target: { ...target, id: 'greet' }, changes }));
    expect(JSON.parse(labeled?.payload ?? '')).toEqual({
      event: 'prompt.labeled',
      org_id: 'org_a',
      name: 'greet',
      ...changes,
      created_at: '2026-03-01T00:00:00.000Z',
    });
    expect(eventOfMutation(mutation({ action: 'prompt.unlabel', target, changes }))).toBeNull();
  });

  it('the registration of an agent becomes an event only when the agent is new', () => {
    const register = (changes: Record<string, unknown>) =>
      eventOfMutation(mutation({ action: 'agent.register', target: { type: 'agent', id: 'agent_1' }, changes }));
    expect(JSON.parse(register({ is_new: true, name: 'n', framework: 'chain', version: '2' })?.payload ?? '')).toEqual({
      event: 'agent.registered',
      agent_id: 'agent_1',
      framework: 'chain',
      version: '2',
    });
    expect(JSON.parse(register({ is_new: true })?.payload ?? '')).toMatchObject({ framework: null, version: null });
    expect(register({ is_new: false })).toBeNull();
    expect(register({ is_new: 'true' })).toBeNull();
    expect(register({})).toBeNull();
  });

  it('a new agent whose changes are too large for the audit log becomes an event', () => {
    const changes = {
      is_new: true,
      name: 'n'.repeat(200),
      framework: 'chain',
      version: 'v'.repeat(128),
      repo_url: 'u'.repeat(2048),
      tags: Array.from({ length: 50 }, () => 't'.repeat(128)),
      metadata: { text: 'm'.repeat(CHANGES_BYTES_MAX - 50) },
    };
    const kept = JSON.parse(auditableChanges(changes)) as Record<string, unknown>;
    expect(kept).toMatchObject({ truncated: true, name: changes.name });
    const event = (over: Record<string, unknown>) =>
      eventOfMutation(
        mutation({ action: 'agent.register', target: { type: 'agent', id: 'agent_1' }, changes: { ...kept, ...over } }),
      );
    expect(JSON.parse(event({})?.payload ?? '')).toEqual({
      event: 'agent.registered',
      agent_id: 'agent_1',
      framework: 'chain',
      version: 'v'.repeat(128),
    });
    expect(event({ is_new: false })).toBeNull();
  });

  it('the deprecation of an agent becomes an event with its reason', () => {
    const event = eventOfMutation(
      mutation({
        action: 'agent.deprecate',
        actor: { type: 'system', id: 'agent-drift' },
        target: { type: 'agent', id: 'agent_1' },
        changes: { drift_type: 'inactive', reason: 'no events in 90 days' },
      }),
    );
    expect(JSON.parse(event?.payload ?? '')).toEqual({
      event: 'agent.deprecated',
      agent_id: 'agent_1',
      drift_type: 'inactive',
      reason: 'no events in 90 days',
    });
  });

  it.each(['org.update', 'member.role_change', 'toString', '__proto__', ''])(
    'the mutation %s becomes no event',
    (action) => {
      expect(eventOfMutation(mutation({ action }))).toBeNull();
    },
  );

  it('an event has an id that is the same each time, and another for another mutation', () => {
    const id = (over: Partial<DoneMutation>) => eventOfMutation(mutation(over))?.event_id;
    expect(id({})).toMatch(/^evt_[0-9a-f]{16}$/);
    expect(id({ changes: {} })).toBe(id({}));
    expect(id({ audit_id: 'aud_2' })).not.toBe(id({}));
    expect(id({ action: 'api_key.revoke' })).not.toBe(id({}));
  });
});
