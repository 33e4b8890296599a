// Bounds on the calls of models in progress through the gateway: those of the process together, and
// those of each organization. Each call keeps two connections open and the text of its answer in
// memory.
import type { OrgSlots } from '../http/org_slots.ts';
import type { RequestFacts } from './check.ts';
import { ADMIT, admitWith, reject, type Settled } from './decision.ts';

/** Maximum number of calls in progress in one process. */
const CALLS_MAX = 10_000;
const RETRY_AFTER_SECONDS = 1;

const PROCESS_FULL = reject(
  'rate_limited',
  'Too many calls are in progress in this process. Retry after the number of seconds in Retry-After.',
  RETRY_AFTER_SECONDS,
);
const ORGANIZATION_FULL = reject(
  'rate_limited',
  'This organization has too many calls under way. Retry after the number of seconds in Retry-After.',
  RETRY_AFTER_SECONDS,
);

/**
 * Admits up to CALLS_MAX calls.
 * @param calls the calls in progress, including the one in question
 */
export function checkProcessCalls(calls: { readonly size: number }): Settled {
  return calls.size > CALLS_MAX ? PROCESS_FULL : ADMIT;
}

/** Reserves one of the organization's calls, until the call has ended. */
export function checkCalls(slots: Pick<OrgSlots, 'take'>, { org_id }: Pick<RequestFacts, 'org_id'>): Settled {
  const release = slots.take(org_id);
  return release === null ? ORGANIZATION_FULL : admitWith({ release });
}
