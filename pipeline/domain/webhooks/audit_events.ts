// Maps mutations to platform events. In: a mutation that has happened. Out: its event, or null.
// Pure; an event's id derives from the mutation's, so that receivers can drop an event that is sent
// twice.
import { hash } from 'node:crypto';
import type { ServiceEvent } from '../../../schemas/codec.ts';
import type { AuditActor, AuditTarget } from '../../../schemas/records/audit.ts';

/** A mutation that has happened. */
export interface DoneMutation {
  audit_id: string;
  org_id: string;
  actor: AuditActor;
  action: string;
  target: AuditTarget;
  changes: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  created_at: number;
}

interface AuditEvent {
  event: string;
  /** Returns true when the mutation causes the event; by default every one does. */
  when?: (mutation: DoneMutation) => boolean;
  /** Payload fields of the event catalog, besides `event`. */
  payload: (mutation: DoneMutation) => Record<string, unknown>;
}

const HEX_LENGTH = 16;

/** The mutation itself, as the audit log shows it. */
const whole = ({ org_id, audit_id, actor, target, changes, created_at }: DoneMutation): Record<string, unknown> => ({
  org_id,
  audit_id,
  actor,
  target,
  changes,
  created_at: new Date(created_at).toISOString(),
});

/** Events by action. */
const EVENTS: Readonly<Record<string, AuditEvent>> = {
  'api_key.create': { event: 'audit.api_key.create', payload: whole },
  'api_key.revoke': { event: 'audit.api_key.revoke', payload: whole },
  'member.invite': { event: 'audit.member.invite', payload: whole },
  'member.remove': { event: 'audit.member.remove', payload: whole },
  'agent.register': {
    event: 'agent.registered',
    when: ({ changes }) => changes['is_new'] === true,
    payload: ({ target, changes }) => ({
      agent_id: target.id,
      framework: changes['framework'] ?? null,
      version: changes['version'] ?? null,
    }),
  },
  'agent.deprecate': {
    event: 'agent.deprecated',
    payload: ({ target, changes }) => ({
      agent_id: target.id,
      drift_type: changes['drift_type'] ?? null,
      reason: changes['reason'] ?? null,
    }),
  },
  'prompt.create': {
    event: 'prompt.created',
    payload: ({ org_id, changes, created_at }) => ({
      org_id,
      name: changes['name'] ?? '',
      version: changes['version'] ?? '',
      model: changes['model'] ?? null,
      created_at: new Date(created_at).toISOString(),
    }),
  },
  'prompt.label': {
    event: 'prompt.labeled',
    payload: ({ org_id, target, changes, created_at }) => ({
      org_id,
      name: target.id,
      label: changes['label'] ?? '',
      version: changes['version'] ?? '',
      previous_version: changes['previous_version'] ?? null,
      created_at: new Date(created_at).toISOString(),
    }),
  },
};

/** Returns the platform event of a mutation; null for most. */
export function eventOfMutation(mutation: DoneMutation): ServiceEvent | null {
  const found = Object.hasOwn(EVENTS, mutation.action) ? EVENTS[mutation.action] : undefined;
  if (found === undefined || found.when?.(mutation) === false) return null;
  const { event } = found;
  return {
    event_id: `evt_${hash('sha256', `${event}\n${mutation.audit_id}`, 'hex').slice(0, HEX_LENGTH)}`,
    event,
    org_id: mutation.org_id,
    created_at: mutation.created_at,
    payload: JSON.stringify({ event, ...found.payload(mutation) }),
  };
}
