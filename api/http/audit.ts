// The audit trail as the edge uses it: what a route declares of its mutation, and what its handler
// adds. api/telemetry/audit implements the trail.
import type { AuditActor, AuditTarget } from '../../schemas/records/audit.ts';

/** Audit declaration of a route that changes something. */
export interface AuditDeclaration {
  /** Action as noun.verb, such as member.role_change. */
  action: string;
  /** Type of the thing that changes. */
  target: AuditTarget['type'];
  /**
   * Path parameter that holds the target's id; left out where the handler reports the id of
   * something it creates.
   */
  param?: string;
  /**
   * The record belongs to the operator's log, to no organization, although the path names one: it
   * outlives the organization.
   */
  operators?: true;
  /**
   * The route sets fields, as every PUT and PATCH does: a request that notes no changes changed
   * nothing and leaves no record.
   */
  sets?: true;
}

/** Receives what a handler adds to the record of its mutation. */
export interface AuditNotes {
  /** Sets the id of what was created, where the path does not name it. */
  target: (id: string) => void;
  /** Adds changes, field by field; never a secret. */
  changes: (changes: Readonly<Record<string, unknown>>) => void;
  /** Sets the organization of the mutation, where neither path nor credential names it. */
  org: (org_id: string) => void;
  /**
   * Reports that nothing changed after all (an upsert that found everything as it was): no record
   * is kept.
   */
  nothing: () => void;
}

/** A mutation that is about to happen. */
export interface AuditIntent {
  org_id: string;
  actor: AuditActor;
  action: string;
  target: AuditTarget;
  request_id: string;
  /** Address of the caller; empty where unknown. */
  ip: string;
}

/**
 * A mutation whose intent is durable. Exactly one method ends it; a mutation that broke off stays
 * open and has an unknown outcome.
 */
export interface AuditEntry {
  /** Records the outcome. `final` holds the fields that the handler has set. */
  done: (final: Pick<AuditIntent, 'org_id' | 'target'> & { changes: Record<string, unknown> }) => Promise<void>;
  /** Records that the mutation did not happen. */
  failed: () => Promise<void>;
}

export interface AuditTrail {
  /**
   * Records durably that a mutation is about to happen. The mutation must not be tried if this
   * fails.
   * @throws ApiError upstream_unavailable
   */
  begin: (intent: AuditIntent) => Promise<AuditEntry>;
}
