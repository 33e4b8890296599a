// Shapes of the session's answers.
import { z } from 'zod';
import { ROLES } from '../../http/permissions.ts';
import { SESSION_COOKIE } from '../../http/session_cookie.ts';

export const session = z
  .object({
    user_id: z.string().describe("The token's sub"),
    email: z.string().nullable().describe('null where the token names none, or names it as not verified'),
    expires_at: z.iso
      .datetime()
      .nullable()
      .describe(
        'When the session ends; null where the token names no end: the answer that begins a session then tells when its cookie ends',
      ),
    orgs: z
      .array(z.object({ org_id: z.string(), name: z.string(), role: z.enum(ROLES) }))
      .describe('Orgs of which the person is an active member'),
  })
  .meta({ id: 'LoginSession' });

export const endedSession = z.object({ id: z.literal(SESSION_COOKIE), deleted: z.literal(true) });
