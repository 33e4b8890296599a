// Response shapes of the browser session.
import { z } from 'zod';
import { grantedResource, grantPermission } from '../../../schemas/records/grant.ts';
import { API_VERSION } from '../../http/envelope.ts';
import { type Permission, PERMISSIONS, ROLES } from '../../http/permissions.ts';
import { SESSION_COOKIE } from '../../http/session_cookie.ts';

const sessionOrg = z.object({
  org_id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  permissions: z
    .array(z.enum(Object.keys(PERMISSIONS) as [Permission, ...Permission[]]))
    .describe('Permissions of the role, which apply to the whole organization'),
  grants: z
    .array(
      z.object({
        grant_id: z.string(),
        resource: grantedResource,
        permissions: z.array(grantPermission),
        expires_at: z.iso.datetime(),
      }),
    )
    .describe('Permissions that the person has on single resources, newest first'),
});

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
    orgs: z.array(sessionOrg).describe('Organizations of which the person is an active member'),
  })
  .meta({ id: 'LoginSession' });

export const endedSession = z.object({ id: z.literal(SESSION_COOKIE), deleted: z.literal(true) });

export const ticketBody = z.object({
  ticket: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, { error: 'must be the 43 characters after # in the login link' })
    .describe('What follows # in the login link'),
});

const LOGIN_WAYS = ['ticket', 'oidc', 'token'] as const;

export const about = z
  .object({
    version: z.literal(API_VERSION).describe('Version of the API'),
    environment: z.enum(['development', 'production']),
    login: z
      .array(z.enum(LOGIN_WAYS))
      .describe(
        'Ways to start a session: `ticket` with a link that `npm start` and `npm run login` print, `oidc` at the identity provider (GET /v1/session/oidc), `token` with a token of the identity provider',
      ),
    models: z
      .boolean()
      .describe('True if a model endpoint is configured, which LLM judges, dataset runs and replays call'),
    mail: z.boolean().describe('True if the service sends mail'),
  })
  .meta({ id: 'About' });
