// The bounds on bytes and events in flight.
import { expect, test } from 'vitest';
import type { RequestFacts } from '../../../api/admission/check.ts';
import { InFlight, ORG_BYTES_MAX, ORG_EVENTS_MAX, TOTAL_BYTES_MAX } from '../../../api/admission/in_flight.ts';

type Facts = Pick<RequestFacts, 'org_id' | 'in_flight'> & { bytes: number; event_count: number };

const aRequest = (org_id: string): Facts => ({ org_id, bytes: 0, event_count: 0, in_flight: null });
const reserveBytes = (inFlight: InFlight, request: Facts, bytes: number) =>
  inFlight.reserveBytes(Object.assign(request, { bytes })).kind;
const reserveEvents = (inFlight: InFlight, request: Facts, event_count: number) =>
  inFlight.reserveEvents(Object.assign(request, { event_count })).kind;

test('rejects the bytes of a flooding organization, admits those of another, and admits both after a release', () => {
  const inFlight = new InFlight();
  const flood = aRequest('a');
  expect(reserveBytes(inFlight, flood, ORG_BYTES_MAX)).toBe('admit');
  expect(inFlight.reserveBytes({ ...aRequest('a'), bytes: 1 })).toMatchObject({
    kind: 'reject',
    code: 'rate_limited',
    retry_after_seconds: 1,
  });
  expect(reserveBytes(inFlight, aRequest('b'), 1000)).toBe('admit');
  flood.in_flight?.release();
  expect(reserveBytes(inFlight, aRequest('a'), 1)).toBe('admit');
});

test('bounds the bytes of all organizations together', () => {
  const inFlight = new InFlight();
  let admitted = 0;
  while (reserveBytes(inFlight, aRequest(`o${admitted}`), 1024 * 1024) === 'admit') admitted++;
  expect(admitted * 1024 * 1024).toBe(TOTAL_BYTES_MAX);
});

test('bounds the events of an organization, and releases a reservation once', () => {
  const inFlight = new InFlight();
  const request = aRequest('a');
  expect(reserveEvents(inFlight, request, ORG_EVENTS_MAX)).toBe('admit');
  expect(reserveEvents(inFlight, request, 1)).toBe('reject');
  request.in_flight?.release();
  request.in_flight?.release();
  const next = aRequest('a');
  expect(reserveEvents(inFlight, next, ORG_EVENTS_MAX)).toBe('admit');
  expect(reserveEvents(inFlight, next, 1)).toBe('reject');
});

test('a request has one reservation, which grows with each piece of its body', () => {
  const inFlight = new InFlight();
  const request = aRequest('a');
  reserveBytes(inFlight, request, 10);
  const reservation = request.in_flight;
  reserveBytes(inFlight, request, 5);
  reserveEvents(inFlight, request, 3);
  expect(request.in_flight).toBe(reservation);
  expect(reservation?.reserved).toEqual({ bytes: 15, events: 3 });
});
