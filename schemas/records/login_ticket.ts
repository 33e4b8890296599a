// Shape of the record of a login ticket in KV, by the SHA-256 of the ticket.
import { z } from 'zod';

export const loginTicket = z.object({
  /** Person whom the ticket logs in. */
  user_id: z.string(),
  expires_at: z.iso.datetime(),
});
