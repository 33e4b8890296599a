// Events of the past: the header that marks a request with them, and how old they may be.
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from './errors.ts';

const HEADER = 'x-service-backfill';
const DAYS_MAX = 400;
const DAY_MS = 86_400_000;

/**
 * Returns true for a request with events of the past.
 * @throws ApiError invalid_request
 */
export function isBackfill(headers: IncomingHttpHeaders): boolean {
  const given = headers[HEADER];
  if (given === undefined || given === 'false') return false;
  if (given === 'true') return true;
  throw new ApiError('invalid_request', 'X-Service-Backfill: must be true or false');
}

/** Returns why a backfilled event is too old; null where it is not. */
export function tooOld(started_at: number, now: number): string | null {
  return started_at < now - DAYS_MAX * DAY_MS ? `lies more than ${DAYS_MAX} days in the past` : null;
}
