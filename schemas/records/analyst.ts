// Record of an organization's analyst in KV.
import { z } from 'zod';

export const analystRecord = z.object({
  /** Name to log in with: unique in the service, and the key of the record. */
  user: z.string(),
  org_id: z.string(),
  /** Display name, unique in the organization. */
  name: z.string(),
  /**
   * SHA-256 of the password, hex. The password is 256 random bits, so it needs no salt and no slow
   * hash.
   */
  password_hash: z.string(),
  created_at: z.iso.datetime(),
});
export type AnalystRecord = z.infer<typeof analystRecord>;
