// Login tickets of a local service: whoever reads one on the terminal of `npm start` may log in with it once, within ten
// minutes. KV holds the SHA-256 of a ticket, never the ticket. Of several uses at once, one succeeds: the entry is
// deleted by compare-and-swap before anybody is logged in.
import { hash, randomBytes } from 'node:crypto';
import { isLostWrite } from '../platform/nats/conflict.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { readEntry } from '../platform/nats/watch.ts';
import { BUCKETS } from '../../schemas/buckets.ts';
import { LOCAL_USER_ID } from '../../schemas/records/org.ts';

const TICKET_BYTES = 32;
const TICKET_MS = BUCKETS.login_tickets.ttlHours * 3_600_000;

type Tickets = Pick<Log, 'bucket'>;

const keyOf = (ticket: string): string => hash('sha256', ticket, 'hex');

/**
 * Creates a ticket for the owner of the first organization. Its text is returned and stored nowhere.
 * @param now milliseconds since the epoch
 */
export async function makeTicket(log: Tickets, now: number): Promise<string> {
  const ticket = randomBytes(TICKET_BYTES).toString('base64url');
  const record = { user_id: LOCAL_USER_ID, expires_at: new Date(now + TICKET_MS).toISOString() };
  await (await log.bucket('login_tickets')).create(keyOf(ticket), JSON.stringify(record));
  return ticket;
}

/**
 * Uses a ticket up.
 * @param now milliseconds since the epoch
 * @returns the user whom it logs in; null when the ticket is unknown, was used, or has expired
 */
export async function spendTicket(log: Tickets, ticket: string, now: number): Promise<string | null> {
  const entry = await readEntry(log, 'login_tickets', keyOf(ticket));
  if (entry === null || Date.parse(entry.record.expires_at) <= now) return null;
  try {
    await (await log.bucket('login_tickets')).delete(keyOf(ticket), { previousSeq: entry.revision });
    return entry.record.user_id;
  } catch (error) {
    if (isLostWrite(error)) return null;
    throw error;
  }
}
