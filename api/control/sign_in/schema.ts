// Response shapes of the browser session.
import { z } from 'zod';
import { ROLES } from '../../http/permissions.ts';
import { SESSION_COOKIE } from '../../http/session_cookie.ts';

export const session = z
  .object({
    user_id: z.string().describe('sub of the token'),
    email: z.string().nullable().describe('null if the token has no email, or an unverified one'),
    expires_at: z.iso
      .datetime()
      .nullable()
      .describe(
        'When the session ends. null if the token has no expiry; the response that starts a session then gives the expiry of the cookie',
      ),
    orgs: z
      .array(z.object({ org_id: z.string(), name: z.string(), role: z.enum(ROLES) }))
      .describe('Organizations of which the person is an active member'),
  })
  .meta({ id: 'LoginSession' });

export const endedSession = z.object({ id: z.literal(SESSION_COOKIE), deleted: z.literal(true) });
