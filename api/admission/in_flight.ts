// Bounds on the bytes and events in flight (being read, parsed or published), for all organizations
// together and for each, so that one organization's flood neither fills the memory nor delays the
// events of another. Two checks share one count. A request has one reservation, which grows with
// every piece of its body; nothing is allocated for a further piece.
import type { RequestFacts } from './check.ts';
import { ADMIT, admitWith, reject, type Reservation, type Settled } from './decision.ts';

/** Bytes of all organizations together. */
export const TOTAL_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Bytes of one organization: less than the total, so that another organization always finds room.
 */
export const ORG_BYTES_MAX = 48 * 1024 * 1024;
const TOTAL_EVENTS_MAX = 200_000;
export const ORG_EVENTS_MAX = 80_000;
const RETRY_AFTER_SECONDS = 1;

const TOO_MANY_BYTES = tooMany('bytes');
const TOO_MANY_EVENTS = tooMany('events');

interface Count {
  bytes: number;
  events: number;
}

interface OrganizationCount extends Count {
  readonly org_id: string;
  /** Requests with a reservation. */
  requests: number;
}

/** Bytes and events that one request has reserved. */
export interface InFlightReservation extends Reservation {
  readonly organization: OrganizationCount;
  readonly reserved: Count;
}

type Facts = Pick<RequestFacts, 'org_id' | 'bytes' | 'event_count' | 'in_flight'>;

export class InFlight {
  readonly #total: Count = { bytes: 0, events: 0 };
  readonly #organizations = new Map<string, OrganizationCount>();

  /** Reserves the bytes that the request is about to keep. */
  reserveBytes(request: Facts): Settled {
    const { bytes, org_id } = request;
    const own = (request.in_flight?.organization ?? this.#organizations.get(org_id))?.bytes ?? 0;
    if (own + bytes > ORG_BYTES_MAX || this.#total.bytes + bytes > TOTAL_BYTES_MAX) return TOO_MANY_BYTES;
    return this.#reserve(request, bytes, 0);
  }

  /** Reserves the events of the request. */
  reserveEvents(request: Facts): Settled {
    const { event_count, org_id } = request;
    const own = (request.in_flight?.organization ?? this.#organizations.get(org_id))?.events ?? 0;
    if (own + event_count > ORG_EVENTS_MAX || this.#total.events + event_count > TOTAL_EVENTS_MAX)
      return TOO_MANY_EVENTS;
    return this.#reserve(request, 0, event_count);
  }

  #reserve(request: Facts, bytes: number, events: number): Settled {
    const known = request.in_flight;
    const reservation = known ?? this.#open(request.org_id);
    request.in_flight = reservation;
    add(this.#total, bytes, events);
    add(reservation.organization, bytes, events);
    add(reservation.reserved, bytes, events);
    return known === null ? admitWith(reservation) : ADMIT;
  }

  #open(org_id: string): InFlightReservation {
    const organization = this.#organizations.get(org_id) ?? { org_id, requests: 0, bytes: 0, events: 0 };
    this.#organizations.set(org_id, organization);
    organization.requests++;
    const reserved = { bytes: 0, events: 0 };
    let open = true;
    return {
      organization,
      reserved,
      release: () => {
        if (!open) return;
        open = false;
        add(this.#total, -reserved.bytes, -reserved.events);
        add(organization, -reserved.bytes, -reserved.events);
        organization.requests--;
        if (organization.requests === 0) this.#organizations.delete(org_id);
      },
    };
  }
}

function add(count: Count, bytes: number, events: number): void {
  count.bytes += bytes;
  count.events += events;
}

function tooMany(of: 'bytes' | 'events') {
  return reject(
    'rate_limited',
    `Too many ${of} are in flight. Retry after the number of seconds in Retry-After.`,
    RETRY_AFTER_SECONDS,
  );
}
