// Who is calling. A union, so that every kind of caller is told apart where it matters and nowhere else.
import type { Scope } from './permissions.ts';

/** An org's API key. It never counts as an owner. */
interface ApiKeyCredential {
  kind: 'api_key';
  org_id: string;
  /** ak_… */
  key_id: string;
  scopes: ReadonlySet<Scope>;
}

/** Whoever shows the admin token: runs the service, belongs to no org. */
export interface OperatorCredential {
  kind: 'operator';
}

/** A caller on a route that asks for no credential. */
export interface AnonymousCredential {
  kind: 'anonymous';
}

export type OrgCredential = ApiKeyCredential;
export type Credential = OrgCredential | OperatorCredential | AnonymousCredential;
