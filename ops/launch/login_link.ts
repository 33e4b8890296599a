// Login links of a local service: an address of the portal whose fragment is a ticket (ops/exchange/login_tickets.ts).
// Fragments reach no server, no log and no referrer.
import { makeTicket } from '../exchange/login_tickets.ts';
import { connectNats } from '../platform/nats/connect.ts';
import { attachLog } from '../platform/nats/open_log.ts';

const NATS_WAIT_MS = 3000;

/**
 * Makes a ticket and returns the link.
 * @param service the address of the service and the NATS that it uses
 * @throws Error with one line when the service does not run
 */
export async function makeLoginLink(service: { baseUrl: string; natsUrl: string }): Promise<string> {
  const nc = await connectNats({ url: service.natsUrl, name: 'login', waitMs: NATS_WAIT_MS });
  try {
    return `${service.baseUrl}/login#${await makeTicket(await attachLog(nc), Date.now())}`;
  } finally {
    await nc.close();
  }
}
