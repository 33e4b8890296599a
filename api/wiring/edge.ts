// Wires the edge of one API process: authentication, rate limits, the audit trail, and idempotency
// keys.
import { randomBytes } from 'node:crypto';
import * as metrics from '../../ops/platform/metrics.ts';
import { createAuditTrail } from '../telemetry/audit/trail.ts';
import { createTokenVerifier } from '../http/jwt.ts';
import type { EdgeDeps } from '../http/mount.ts';
import type { SessionTokens } from '../http/session_token.ts';
import { classifyStoreFailure } from '../http/store_errors.ts';
import type { IngestOnce } from '../intake/ingest/once.ts';
import { limitsOfTenant } from '../admission/rate/plans.ts';
import { shareLimits } from '../admission/rate/sharing.ts';
import { TenantLimits } from '../admission/rate/tenant_limits.ts';
import { openKeyed } from './keyed.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export interface Edge {
  deps: EdgeDeps;
  once: IngestOnce;
  /** Resolves once the audit records of answered requests are stored or given up. */
  flush: () => Promise<void>;
  close: () => void;
}

/** Opens the edge. A process without an operator token generates one and shows it. */
export async function openEdge(
  parts: WiringParts,
  { orgs, keys, grants }: Stores,
  { sessions, keyRequests }: { sessions: SessionTokens | null; keyRequests: EdgeDeps['keyRequests'] },
): Promise<Edge> {
  const { env, logger, log, now, show, tracked, onProblem } = parts;
  const adminToken = env.SERVICE_ADMIN_TOKEN ?? randomBytes(24).toString('base64url');
  if (env.SERVICE_ADMIN_TOKEN === undefined) show(`Operator token of this process: ${adminToken}`);
  const tokens = createTokenVerifier({
    secret: env.SERVICE_JWT_SECRET,
    // Portals under development issue tokens that hold nothing but the user, without an expiry.
    mayBeEndless: env.SERVICE_ENV !== 'production',
    jwksUrl: env.SERVICE_JWT_JWKS_URL,
    issuer: env.SERVICE_JWT_ISSUER,
    audience: env.SERVICE_JWT_AUDIENCE,
    now,
    onProblem,
  });
  const limits = new TenantLimits({
    limitsOf: limitsOfTenant(orgs),
    appPerMinute: env.SERVICE_APP_INGEST_PER_TENANT_RPM,
    now: () => performance.now(),
    onReject: (kind) => {
      metrics.rateLimitedTotal.inc({ kind });
    },
  });
  const sharing = await shareLimits(limits, { nc: log.nc, tracked, onProblem });
  const { idempotency, once } = await openKeyed({ log, tracked, now, onProblem, waits: parts.waits });
  const audit = createAuditTrail(log, { now, connected: () => tracked.connected, onProblem });
  const deps: EdgeDeps = {
    auth: { keys, adminToken, tokens, sessions, memberships: orgs, grants, now },
    limits,
    keyRequests,
    audit,
    idempotency,
    classifyStore: classifyStoreFailure,
    bodyBytesMax: env.SERVICE_MAX_BODY_BYTES,
    now,
    log: logger,
    observe: (route, method, status, seconds) => {
      metrics.httpRequestDurationSeconds.observe({ route, method, status: String(status) }, seconds);
    },
  };
  return {
    deps,
    once,
    flush: () => audit.flush(),
    close: () => {
      tokens.close();
      sharing.close();
    },
  };
}
