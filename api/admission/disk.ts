// The disk check: while the disk of the ingest log is low, no new events are admitted, because
// storing what has been acknowledged needs the rest of it.
import { ADMIT, reject, type Settled } from './decision.ts';

const RETRY_AFTER_SECONDS = 10;

const DISK_LOW = reject(
  'rate_limited',
  'The disk of the service is nearly full: nothing new is stored until there is room. Send it again later.',
  RETRY_AFTER_SECONDS,
);

/** Admits while the disk has room. */
export function checkDisk(disk: { readonly low: boolean }): Settled {
  return disk.low ? DISK_LOW : ADMIT;
}
