// The audit trail as the edge sees it: what a route declares of its mutation, and what a handler adds to it. Who writes it
// down, and where, is the audit slice's.
import type { AuditActor, AuditTarget } from '../../schemas/records/audit.ts';

/** What a route that changes something says of it. */
export interface AuditDeclaration {
  /** What is done, as noun.verb: member.role_change. */
  action: string;
  /** What it is done to. */
  target: AuditTarget['type'];
  /** The path parameter that holds the target's id; left out where the handler names it (a thing that is made). */
  param?: string;
  /** The record stands in the operator's own log, under no org, although the path names one: it outlives the org. */
  operators?: true;
  /** The route sets fields, as every PUT and PATCH does: a request that notes no changes made none, and leaves no record. */
  sets?: true;
}

/** What a handler adds to the record of its mutation. */
export interface AuditNotes {
  /** The id of what was made, where the path does not name it. */
  target: (id: string) => void;
  /** What changed, field by field; never a secret. Later calls add to earlier ones. */
  changes: (changes: Readonly<Record<string, unknown>>) => void;
  /** The org that the mutation is about, where neither path nor credential names it. */
  org: (org_id: string) => void;
  /** Nothing was changed after all (an upsert that found all as it was): no record is kept. */
  nothing: () => void;
}

/** A mutation that is about to happen. */
export interface AuditIntent {
  org_id: string;
  actor: AuditActor;
  action: string;
  target: AuditTarget;
  request_id: string;
  /** Of the caller; empty where unknown. */
  ip: string;
}

/** A mutation whose intent is durable. One of the two ends it; one that broke off is ended by neither and shows as of unknown outcome. */
export interface AuditEntry {
  /** Fields that the handler changed its mind about go in `final`. */
  done: (final: Pick<AuditIntent, 'org_id' | 'target'> & { changes: Record<string, unknown> }) => Promise<void>;
  /** The mutation did not happen. */
  failed: () => Promise<void>;
}

export interface AuditTrail {
  /**
   * Writes down durably that a mutation is about to happen; it must not be tried when this fails.
   * @throws ApiError upstream_unavailable
   */
  begin: (intent: AuditIntent) => Promise<AuditEntry>;
}
