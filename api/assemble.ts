// Everything between a process's clients and its request listener: stores, edge, ingest, routes. The one place where the
// slices meet. Reads ClickHouse's state in the background, so that it may come later than the rest.
import { randomBytes } from 'node:crypto';
import type { Env } from '../ops/env.ts';
import type { Logger } from '../ops/log.ts';
import { queueMail } from '../ops/mail_queue.ts';
import * as metrics from '../ops/metrics.ts';
import { trackConnected } from '../ops/nats/connect.ts';
import { fixedPartitions, type Log } from '../ops/streams.ts';
import { ownerOf } from '../schemas/records/org.ts';
import type { Mail } from '../schemas/codec.ts';
import type { ClickHouse } from '../sql/client.ts';
import { migrate } from '../sql/migrate.ts';
import { WebhookDeadLetters } from '../ops/webhook_queue.ts';
import { openSealer } from '../ops/sealing.ts';
import { AgentActivity } from './agents/activity.ts';
import { agentRoutes } from './agents/routes.ts';
import { AgentStore } from './agents/store.ts';
import { RegisterTokens } from './agents/tokens.ts';
import { auditRoutes } from './audit/routes.ts';
import { createAuditTrail } from './audit/trail.ts';
import { createApp, type RequestListener } from './app.ts';
import { costRoutes } from './costs/routes.ts';
import { CostSettings } from './costs/settings.ts';
import { createTokenVerifier } from './http/jwt.ts';
import { grantable } from './grantable.ts';
import type { EdgeDeps } from './http/mount.ts';
import { classifyStoreFailure } from './http/store_errors.ts';
import { AckInbox } from './ingest/ack_inbox.ts';
import { Admission } from './ingest/admission.ts';
import { openBudgets } from './budgets/open.ts';
import { createPriceBook } from '../pipeline/domain/pricing.ts';
import type { IngestDeps } from './ingest/handler.ts';
import { Publisher } from './ingest/publisher.ts';
import { limitsOfTenant } from './limits/plans.ts';
import { shareLimits } from './limits/sharing.ts';
import { TenantLimits } from './limits/tenant_limits.ts';
import { openKeyed } from './keyed.ts';
import { jobRoutes } from './jobs/routes.ts';
import { bootstrapOrg } from './orgs/bootstrap.ts';
import { grantRoutes } from './orgs/grant_routes.ts';
import { GrantStore } from './orgs/grant_store.ts';
import { memberRoutes } from './orgs/member_routes.ts';
import { operatorRoutes } from './orgs/operator_routes.ts';
import { policyRoutes } from './orgs/policy_routes.ts';
import { PolicyStore } from './orgs/policy_store.ts';
import { orgRoutes } from './orgs/routes.ts';
import { KeyStore, OrgStore } from './orgs/store.ts';
import { transferRoutes } from './orgs/transfer_routes.ts';
import { sessionRoutes } from './session/routes.ts';
import { spanRoutes } from './spans/routes.ts';
import { traceRoutes } from './traces/routes.ts';
import { ReadinessWatch } from './system/readiness.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { WebhookStore } from './webhooks/store.ts';

const MIGRATE_RETRY_MS = 1000;

type ApiSettings = Pick<
  Env,
  | 'SERVICE_PARTITIONS'
  | 'SERVICE_BOOTSTRAP_ORG_ID'
  | 'SERVICE_BOOTSTRAP_API_KEY'
  | 'SERVICE_ADMIN_TOKEN'
  | 'SERVICE_CLICKHOUSE_CLUSTER'
  | 'SERVICE_MAX_BODY_BYTES'
  | 'SERVICE_APP_INGEST_PER_TENANT_RPM'
  | 'SERVICE_ENV'
  | 'SERVICE_JWT_SECRET'
  | 'SERVICE_JWT_JWKS_URL'
  | 'SERVICE_JWT_ISSUER'
  | 'SERVICE_JWT_AUDIENCE'
  | 'SERVICE_ENCRYPTION_KEY'
>;

export interface ApiParts {
  env: ApiSettings;
  logger: Logger;
  log: Log;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Shows a secret that this process has made up, once. */
  show: (line: string) => void;
}

export interface Api {
  listener: RequestListener;
  /** Resolves when everything that was published is confirmed or given up. */
  flush: () => Promise<void>;
  /** Stops watching and retrying; the clients are the caller's. */
  close: () => void;
}

/** Wires the API of one process. */
export async function assembleApi({ env, logger, log, clickhouse, now, show }: ApiParts): Promise<Api> {
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const tracked = trackConnected(log.nc);
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const [orgs, keys, agents] = await Promise.all([
    OrgStore.open(log, onProblem),
    KeyStore.open(log, onProblem),
    AgentStore.open(log, onProblem),
  ]);
  const grants = await GrantStore.open({ log, memberOf: (org_id, user_id) => orgs.memberOf(org_id, user_id), now, onProblem });
  const policies = await PolicyStore.open(log, onProblem);
  const costSettings = await CostSettings.open(log, onProblem);
  const orgsDeps = {
    orgs,
    keys,
    grants,
    exists: grantable({ clickhouse, agents }),
    queueMail: (mail: Mail) => queueMail(log, mail),
    showTokens: env.SERVICE_ENV === 'development',
    now,
  };
  const madeKey = await bootstrapOrg(orgsDeps, env.SERVICE_BOOTSTRAP_ORG_ID, env.SERVICE_BOOTSTRAP_API_KEY);
  if (madeKey !== null) show(`API key of ${env.SERVICE_BOOTSTRAP_ORG_ID}, shown this once: ${madeKey}`);
  const adminToken = env.SERVICE_ADMIN_TOKEN ?? randomBytes(24).toString('base64url');
  if (env.SERVICE_ADMIN_TOKEN === undefined) show(`Operator token of this process: ${adminToken}`);

  const migration = migrateInBackground(clickhouse, env, logger);
  const pingClickHouse = async () => migration.done && (await clickhouse.ping());
  const readiness = await ReadinessWatch.open(log, { tracked, partitions, pingClickHouse }, onProblem);
  const tokens = createTokenVerifier({
    secret: env.SERVICE_JWT_SECRET,
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
    onRefused: (kind) => {
      metrics.rateLimitedTotal.inc({ kind });
    },
  });
  const sharing = await shareLimits(limits, { nc: log.nc, tracked, onProblem });
  const { idempotency, once } = await openKeyed({ log, tracked, now, onProblem });
  const audit = createAuditTrail(log, { now, connected: () => tracked.connected, onProblem });
  const edge: EdgeDeps = {
    auth: { keys, adminToken, tokens, memberships: orgs, grants },
    limits,
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
  const development = env.SERVICE_ENV === 'development';
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const budgets = await openBudgets({
    log,
    clickhouse,
    now,
    prices: createPriceBook((org_id) => costSettings.pricesOf(org_id).prices),
    ruleOf: (org_id) => policies.get(org_id),
    orgOf: (org_id) => {
      const org = orgs.get(org_id);
      return org === null ? null : { ...org, owner: ownerOf(org) };
    },
    sealer,
    development,
    onProblem,
  });
  const webhooks = {
    store: await WebhookStore.open(log, onProblem),
    deadLetters: await WebhookDeadLetters.open(log),
    sealer,
    log,
    clickhouse,
    development,
    now,
  };
  const publisher = new Publisher({
    port: new AckInbox(log.nc, tracked),
    partitions,
    now: () => performance.now(),
    observe: observePublish,
  });
  const activity = new AgentActivity({ clickhouse, agents, onProblem });
  activity.start();
  const agentsDeps = {
    agents,
    tokens: new RegisterTokens(await log.bucket('register_tokens'), now),
    lastSeen: (org_id: string, agent_id: string) => activity.lastSeen(org_id, agent_id),
    now,
  };
  const costDeps = {
    clickhouse,
    settings: costSettings,
    agentMetadata: (org_id: string, agent_id: string) => agents.get(org_id, agent_id)?.metadata ?? null,
    policyOf: (org_id: string) => policies.get(org_id),
    now,
  };
  const sessionDeps = { orgsOf: (user_id: string) => orgs.orgsOf(user_id), secure: env.SERVICE_ENV === 'production', now };
  const listener = createApp({
    edge,
    ingest: { admission: new Admission(), budgets, publisher, once, partitions, observeIngest },
    readiness,
    routes: [...traceRoutes({ clickhouse, now }), ...spanRoutes({ clickhouse }), ...auditRoutes({ clickhouse, now }), ...sessionRoutes(sessionDeps), ...agentRoutes(agentsDeps), ...jobRoutes({ nc: log.nc, connected: () => tracked.connected }), ...orgRoutes(orgsDeps), ...memberRoutes(orgsDeps), ...transferRoutes(orgsDeps), ...grantRoutes(orgsDeps), ...policyRoutes(policies), ...costRoutes(costDeps), ...operatorRoutes(orgsDeps), ...budgets.routes, ...webhookRoutes(webhooks)],
  });
  const close = () => {
    migration.stop();
    for (const part of [readiness, webhooks.store, budgets, activity, agents, orgs, keys, grants, policies, costSettings, tokens, sharing]) part.close();
  };
  return { listener, flush: async () => void (await Promise.all([publisher.flush(), audit.flush()])), close };
}

const observePublish = (events: number, seconds: number): void => {
  metrics.logPublishSeconds.observe(seconds);
  metrics.logPublishEvents.observe(events);
};

const observeIngest: IngestDeps['observeIngest'] = (format, status, events, bytes) => {
  metrics.ingestRequestsTotal.inc({ format, status: String(status) });
  if (events === 0) return;
  metrics.ingestEventsTotal.inc({ format }, events);
  metrics.ingestBytesTotal.inc(bytes);
};

/** Applies migrations until it works; reads answer 502 meanwhile. */
function migrateInBackground(clickhouse: ClickHouse, env: ApiSettings, logger: Logger): { readonly done: boolean; stop: () => void } {
  const stopped = new AbortController();
  const state = {
    done: false,
    stop: () => {
      stopped.abort();
    },
  };
  const run = async () => {
    for (let tries = 0; !stopped.signal.aborted; tries++) {
      try {
        await migrate(clickhouse, { cluster: env.SERVICE_CLICKHOUSE_CLUSTER });
        state.done = true;
        return;
      } catch (cause) {
        if (tries === 0) logger.warn({ err: cause }, 'ClickHouse is not ready; reads answer 502 until it is, ingest goes on');
        await new Promise((resolve) => setTimeout(resolve, MIGRATE_RETRY_MS).unref());
      }
    }
  };
  void run();
  return state;
}
