// The check that the organization still exists: a request may outlast the deletion of its
// organization.
import type { RequestFacts } from './check.ts';
import { ADMIT, reject, type Settled } from './decision.ts';

const DELETED = reject('unauthenticated', 'The organization has been deleted.', null);

/** Admits unless the organization is being deleted. */
export function checkExists(isDeleted: (org_id: string) => boolean, { org_id }: Pick<RequestFacts, 'org_id'>): Settled {
  return isDeleted(org_id) ? DELETED : ADMIT;
}
