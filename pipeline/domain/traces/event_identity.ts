// The identity of an event, by which repeats are recognised. event_hex is a hash of what was sent,
// so that a sender can compute it; another organization that sends the same text sends no repeat.
// So the identity combines event_hex with the organization.
import { xxHash32 } from './xxhash.ts';

/** Maximum organizations whose hashes are cached; others are computed again. */
const ORGS_MAX = 100_000;
const orgs = new Map<string, readonly [high: number, low: number]>();

/** Two unsigned 32-bit numbers for an organization. sql/stores/partition_rows.ts computes the same from the column org_id. */
function orgHalves(org_id: string): readonly [high: number, low: number] {
  let halves = orgs.get(org_id);
  if (halves === undefined) {
    if (orgs.size >= ORGS_MAX) orgs.clear();
    halves = [xxHash32(Buffer.from(`high ${org_id}`, 'utf8')), xxHash32(Buffer.from(`low ${org_id}`, 'utf8'))];
    orgs.set(org_id, halves);
  }
  return halves;
}

/**
 * Returns the event's own 64 bits, mixed with its organization, as two unsigned 32-bit numbers.
 * Within an organization, distinct events stay distinct.
 */
export function identityHalves({
  org_id,
  event_hex,
}: {
  org_id: string;
  event_hex: string;
}): readonly [high: number, low: number] {
  const [orgHigh, orgLow] = orgHalves(org_id);
  return [
    (Number.parseInt(event_hex.slice(0, 8), 16) ^ orgHigh) >>> 0,
    (Number.parseInt(event_hex.slice(8), 16) ^ orgLow) >>> 0,
  ];
}

/** Returns the identity as 16 hex characters. */
export function eventIdentity(event: { org_id: string; event_hex: string }): string {
  const [high, low] = identityHalves(event);
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}
