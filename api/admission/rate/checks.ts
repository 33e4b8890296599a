// The rate checks. A request is charged when its caller is known, browser events when they have
// been counted. The response shows what is left of the rate, whether or not the request is
// admitted; a rejection's Retry-After is among these headers.
import type { RateKind, RateLimits, RateVerdict } from '../../http/rate_limit.ts';
import type { RequestFacts } from '../check.ts';
import { ADMIT, reject, type Settled } from '../decision.ts';

const DETAILS: Readonly<Record<RateKind, string>> = {
  api: 'This organization makes too many API requests. Retry after the number of seconds in Retry-After.',
  ingest: 'This organization sends too many ingest requests. Retry after the number of seconds in Retry-After.',
  app: 'This organization sends too many app events. Retry after the number of seconds in Retry-After.',
  backfill:
    'This organization sends too many requests with events of the past. Retry after the number of seconds in Retry-After.',
};

/**
 * Charges one request: a call through the gateway to the rate of API requests, any other to the
 * rate of ingest.
 */
export function checkRequestRate(
  limits: RateLimits,
  { intake, org_id, backfill }: Pick<RequestFacts, 'intake' | 'org_id' | 'backfill'>,
): Settled {
  if (backfill) return charge(limits, 'backfill', org_id, 1);
  return charge(limits, intake === 'gateway' ? 'api' : 'ingest', org_id, 1);
}

type EventFacts = Pick<RequestFacts, 'org_id' | 'event_count' | 'event_rate_charged' | 'backfill'>;

/** Charges the events of a request. */
export function checkEventRate(limits: RateLimits, request: EventFacts): Settled {
  request.event_rate_charged = true;
  return request.backfill
    ? charge(limits, 'backfill', request.org_id, 1)
    : charge(limits, 'app', request.org_id, request.event_count);
}

/**
 * Charges a failed request as one event unless its events have been charged, so that invalid
 * requests are not free.
 */
export function checkFailure(limits: RateLimits, request: EventFacts): Settled {
  if (request.event_rate_charged) return ADMIT;
  request.event_rate_charged = true;
  return charge(limits, request.backfill ? 'backfill' : 'app', request.org_id, 1);
}

function charge(limits: RateLimits, kind: RateKind, tenant: string, cost: number): Settled {
  const { allowed, headers }: RateVerdict = limits.take(kind, tenant, cost);
  if (!allowed) return reject('rate_limited', DETAILS[kind], null, { limit_headers: headers });
  return { kind: 'admit', limit_headers: headers, reservation: null };
}
