// Wires organizations with their members and settings, and the long jobs; creates the first
// organization of a new service.
import { AuditLog, recordSystemMutation } from '../../ops/exchange/audit_log.ts';
import { ErasureRequests } from '../../ops/exchange/erase_requests.ts';
import { spendTicket } from '../../ops/exchange/login_tickets.ts';
import { queueMail } from '../../ops/exchange/mail_queue.ts';
import { hasLocalLogin, oidcClientOf } from '../../ops/platform/env.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import {
  createJob,
  createJobOnce,
  checkOpenJobs,
  findJob,
  jobRecordRoutes,
  operatorJobRoutes,
} from '../control/jobs/records.ts';
import { repriceRoutes } from '../control/jobs/reprice.ts';
import { jobRoutes } from '../control/jobs/routes.ts';
import { bootstrapOrg } from '../control/orgs/bootstrap.ts';
import { deadLetterRoutes } from '../control/operator/dead_letters.ts';
import { scheduledJobRoutes } from '../control/operator/jobs.ts';
import { operatorSessionRoutes } from '../control/operator/session.ts';
import { orgDeletionRoutes } from '../control/orgs/deletion_routes.ts';
import { grantRoutes } from '../control/orgs/grant_routes.ts';
import { keyRoutes } from '../control/orgs/key_routes.ts';
import type { GrantsDeps } from '../control/orgs/grants.ts';
import type { MembersDeps } from '../control/orgs/members.ts';
import { memberRoutes } from '../control/orgs/member_routes.ts';
import { operatorRoutes } from '../control/orgs/operator_routes.ts';
import { permissionRoutes } from '../control/orgs/permission_routes.ts';
import { policyRoutes } from '../control/orgs/policy_routes.ts';
import { orgRoutes } from '../control/orgs/routes.ts';
import { transferRoutes } from '../control/orgs/transfer_routes.ts';
import { checkPatterns } from '../control/privacy/check.ts';
import { eraseRoutes } from '../control/privacy/erase_routes.ts';
import { privacyRoutes } from '../control/privacy/routes.ts';
import { retentionRoutes } from '../control/retention/routes.ts';
import { type OidcDeps, oidcRoutes } from '../control/sign_in/oidc.ts';
import { Provider } from '../control/sign_in/provider.ts';
import { type SessionDeps, sessionRoutes } from '../control/sign_in/routes.ts';
import { createTokenVerifier } from '../http/jwt.ts';
import { API_VERSION } from '../http/envelope.ts';
import type { Route } from '../http/route.ts';
import type { SessionTokens } from '../http/session_token.ts';
import { grantable } from './grantable.ts';
import { isDevelopment, type WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export interface OrgSliceDeps {
  sealer: Sealer;
  sessions: SessionTokens | null;
  /** Resolves once the stored budget of an API key applies in this process, after a bounded time. */
  keyInForce: (org_id: string, key_id: string) => Promise<void>;
}

/** Returns the routes of organizations, members, grants, policies, sign-in and the operator. */
export function orgSliceRoutes(
  parts: WiringParts,
  stores: Stores,
  { sealer, sessions, keyInForce }: OrgSliceDeps,
): Route[] {
  const { orgs, policies, piiPolicies, grants } = stores;
  const orgsDeps = orgsDepsOf(parts, stores);
  return [
    orgRoutes(orgsDeps),
    permissionRoutes(),
    keyRoutes({ ...orgsDeps, clickhouse: parts.clickhouse, keyInForce }),
    memberRoutes(orgsDeps),
    transferRoutes(orgsDeps),
    grantRoutes(orgsDeps),
    policyRoutes(policies, {
      of: (org_id) => piiPolicies.get(org_id),
      check: checkPatterns,
      change: (org_id, change) => piiPolicies.change(org_id, change, sealer),
    }),
    sessionRoutes({
      orgsOf: (user_id) => orgs.orgsOf(user_id),
      grantsOf: (org_id, user_id) => grants.list(org_id).filter((grant) => grant.user_id === user_id),
      local: sessions !== null && hasLocalLogin(parts.env) ? localLogin(parts, sessions) : null,
      about: aboutOf(parts),
      secure: !isDevelopment(parts),
      now: parts.now,
    }),
    oidcRoutes(oidcDeps(parts, sealer, sessions)),
    operatorRoutes(orgsDeps),
  ].flat();
}

function oidcDeps(parts: WiringParts, sealer: Sealer, sessions: SessionTokens | null): OidcDeps {
  const { env, now, onProblem } = parts;
  const client = oidcClientOf(env);
  return {
    provider:
      client === null || sessions === null
        ? null
        : new Provider({
            ...client,
            redirect_uri: `${client.public_url}/v1/session/oidc/callback`,
            verifier: createTokenVerifier({
              jwksUrl: env.SERVICE_JWT_JWKS_URL,
              issuer: client.issuer,
              audience: client.client_id,
              now,
              onProblem,
            }),
            now,
          }),
    sealer,
    sign: (person, expires_at) => {
      if (sessions === null) throw new Error('this process signs no session tokens');
      return sessions.sign(person, expires_at);
    },
    secure: !isDevelopment(parts),
    now,
    onProblem,
  };
}

/** Returns the routes of the operator that belong to no organization: the session, dead letters, scheduled jobs. */
export function operatorSliceRoutes(parts: WiringParts, adminToken: string): Route[] {
  const { log, tracked, now } = parts;
  const connected = (): boolean => tracked.connected;
  return [
    operatorSessionRoutes({ adminToken, secure: !isDevelopment(parts), now }),
    deadLetterRoutes({ log, connected }),
    scheduledJobRoutes({ log, connected, now }),
  ].flat();
}

function localLogin({ log, now }: WiringParts, sessions: SessionTokens): SessionDeps['local'] {
  return {
    spend: (ticket) => spendTicket(log, ticket, now()),
    sign: (user_id, expires_at) => sessions.sign({ user_id, email: null }, expires_at),
  };
}

function aboutOf({ env }: WiringParts): SessionDeps['about'] {
  const takesTokens = env.SERVICE_JWT_SECRET !== undefined || env.SERVICE_JWT_JWKS_URL !== undefined;
  return {
    version: API_VERSION,
    environment: env.SERVICE_ENV,
    login: [
      ...(hasLocalLogin(env) ? (['ticket'] as const) : []),
      ...(oidcClientOf(env) === null ? [] : (['oidc'] as const)),
      ...(takesTokens ? (['token'] as const) : []),
    ],
    models: env.SERVICE_LLM_BASE_URL !== undefined,
    mail: env.SERVICE_SMTP_URL !== undefined,
  };
}

/**
 * Returns the routes of privacy, retention, the deletion of organizations, and jobs: work that
 * pipeline workers carry out.
 */
export async function jobSliceRoutes(parts: WiringParts, stores: Stores, sealer: Sealer): Promise<Route[]> {
  const { env, log, tracked, now } = parts;
  const { orgs, deletions, piiPolicies, retention, jobs } = stores;
  const records = { records: jobs, now };
  const ask = createJob.bind(null, records);
  const eraseAsks = await ErasureRequests.open(log, sealer);
  const jobsDeps = { nc: log.nc, connected: () => tracked.connected };
  return [
    privacyRoutes({ policies: piiPolicies, sealer }),
    eraseRoutes({
      checkRoom: checkOpenJobs.bind(null, records),
      keep: (org_id, value) => eraseAsks.create(org_id, value),
      ask,
    }),
    retentionRoutes({ policies: retention, ask }),
    orgDeletionRoutes({
      orgs,
      deletions,
      bootstrapOrgId: env.SERVICE_BOOTSTRAP_ORG_ID,
      begin: createJobOnce.bind(null, records),
      jobOf: findJob.bind(null, records),
      now,
    }),
    jobRoutes(jobsDeps),
    jobRecordRoutes(records),
    operatorJobRoutes(records),
    repriceRoutes({ ...jobsDeps, hasOrg: (org_id) => orgs.get(org_id) !== null }),
  ].flat();
}

/** Creates the first organization with its API key where they are missing, and shows a key that was generated. */
export async function createFirstOrg(parts: WiringParts, stores: Stores): Promise<void> {
  const { env, log, now, tracked, show, onProblem } = parts;
  const audit = new AuditLog(log, { now, connected: () => tracked.connected, onProblem });
  const record = recordSystemMutation.bind(null, audit);
  const { SERVICE_BOOTSTRAP_ORG_ID: org_id, SERVICE_BOOTSTRAP_API_KEY: given } = env;
  const generated = await bootstrapOrg({ ...orgsDepsOf(parts, stores), record }, org_id, given);
  if (generated !== null) show(`API key of ${org_id}, shown this once: ${generated}`);
}

function orgsDepsOf(parts: WiringParts, stores: Stores): GrantsDeps & MembersDeps {
  const { env, log, clickhouse, now } = parts;
  const { orgs, keys, deletions, grants, agents, judges, datasets } = stores;
  return {
    orgs,
    keys,
    deletions,
    grants,
    exists: grantable({ clickhouse, agents, judges, datasets }),
    queueMail: (mail) => queueMail(log, mail),
    showTokens: isDevelopment(parts),
    portal: env.SERVICE_PUBLIC_URL ?? null,
    now,
  };
}
