// A real API in the test's process, on a free port and with its own connection to the test's
// nats-server. Several of them on one nats-server behave as several API processes do.
import { SignJWT } from 'jose';
import { createLogger } from '../../../ops/platform/logger.ts';
import { openRoutes } from '../../../ops/platform/llm/routes.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { storeOfOne } from '../../../sql/client/shards.ts';
import { assembleApi } from '../../../api/assemble.ts';
import type { NatsWaits } from '../../../api/wiring/parts.ts';
import type { SamplingSettings } from '../../../api/telemetry/sampling/sampling.ts';
import { closeGracefully, httpServer, listen } from '../../../api/http/server.ts';
import { confirmed } from '../../support/wait.ts';

export const ORG = 'org_test';
export const KEY = 'sk_svc_testkeytestkeytestkey';
export const ADMIN_TOKEN = 'admin-token-of-the-tests';
export const JWT_SECRET = 'jwt-secret-of-the-tests-0123456789abcdef';
const PATIENT: NatsWaits = { commitMsMax: 15_000, keyMsMax: 10_000 };
/** A URL at which no ClickHouse listens. */
const NO_CLICKHOUSE = 'http://app:secret@127.0.0.1:9/millrace';

export interface TestApi {
  url: string;
  port: number;
  /** Port of OTLP over gRPC; 0 where it is off. */
  grpcPort: number;
  log: Log;
  close(): Promise<void>;
}

export interface TestApiOptions {
  natsUrl: string;
  clickhouseUrl?: string;
  /** Replaces KEY. */
  bootstrapKey?: string;
  /** Replaces ADMIN_TOKEN. */
  adminToken?: string;
  logBytesMax?: number;
  bodyBytesMax?: number;
  /** True to serve OTLP over gRPC too. */
  grpc?: boolean;
  appPerMinute?: number;
  corsOrigins?: readonly string[];
  now?: () => number;
  production?: boolean;
  /** URL of an OpenAI-compatible upstream. */
  llmUrl?: string;
  llmKey?: string;
  /** URL of an upstream that speaks Anthropic's API. */
  anthropicUrl?: string;
  anthropicKey?: string;
  /**
   * File of the gateway's routing table, and the variables in which the gateway looks up its keys.
   */
  gateway?: { routes: string; keys?: Record<string, string> };
  /** SERVICE_GATEWAY_CALLS_PER_ORG */
  gatewayCallsPerOrg?: number;
  sampling?: Partial<SamplingSettings>;
  /** Folder of the portal's built files; without it the API serves no portal. */
  portalDir?: string;
  /** Receives the name of every ClickHouse query once the query has been answered. */
  observeQuery?: (name: string) => void;
  /**
   * How long requests wait for NATS. The default is longer than the contract allows, so that a busy
   * machine causes no 502.
   */
  waits?: NatsWaits;
  /** An OIDC provider that replaces JWT_SECRET. */
  provider?: { jwksUrl: string; issuer?: string; audience?: string };
  /** SERVICE_PUBLIC_URL; that of `oidc` counts before it. */
  publicUrl?: string;
  /** The client of the provider by which people log in to the portal. */
  oidc?: { client_id: string; client_secret: string; public_url: string };
}

/** Starts an API. The caller must close() it before the API's nats-server stops. */
export async function startTestApi(options: TestApiOptions): Promise<TestApi> {
  const nc = await connectNats({ url: options.natsUrl, name: 'api-test', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: options.logBytesMax ?? 64 * 1024 * 1024 });
  const url = options.clickhouseUrl ?? NO_CLICKHOUSE;
  const { observeQuery } = options;
  const clickhouse = createClickHouse(observeQuery === undefined ? { url } : { url, observeQuery });
  const api = await assembleApi({
    env: {
      SERVICE_ENV: options.production === true ? 'production' : 'development',
      SERVICE_PARTITIONS: 4,
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: options.bootstrapKey ?? KEY,
      SERVICE_ADMIN_TOKEN: options.adminToken ?? ADMIN_TOKEN,
      SERVICE_CLICKHOUSE_CLUSTER: undefined,
      SERVICE_MAX_BODY_BYTES: options.bodyBytesMax ?? 5_242_880,
      SERVICE_APP_INGEST_PER_TENANT_RPM: options.appPerMinute ?? 5000,
      SERVICE_OTLP_GRPC_PORT: options.grpc === true ? 0 : undefined,
      SERVICE_CORS_ORIGINS: [...(options.corsOrigins ?? [])],
      SERVICE_JWT_SECRET: JWT_SECRET,
      SERVICE_JWT_JWKS_URL: options.provider?.jwksUrl,
      SERVICE_JWT_ISSUER: options.provider?.issuer,
      SERVICE_JWT_AUDIENCE: options.provider?.audience,
      SERVICE_ENCRYPTION_KEY: undefined,
      SERVICE_LLM_BASE_URL: options.llmUrl,
      SERVICE_LLM_API_KEY: options.llmKey,
      SERVICE_OIDC_CLIENT_ID: options.oidc?.client_id,
      SERVICE_OIDC_CLIENT_SECRET: options.oidc?.client_secret,
      SERVICE_PUBLIC_URL: options.oidc?.public_url ?? options.publicUrl,
      SERVICE_SMTP_URL: undefined,
      SERVICE_PORTAL: true,
      SERVICE_PORTAL_DIR: options.portalDir,
      SERVICE_GATEWAY_CALLS_PER_ORG: options.gatewayCallsPerOrg ?? 256,
      SERVICE_SAMPLING_PROFILE: 'full',
      SERVICE_SAMPLING_ENABLED: true,
      SERVICE_SAMPLING_SLOW_MS: 5000,
      SERVICE_SAMPLING_TAIL: false,
      SERVICE_TRACE_GRACE_MS: 1000,
      SERVICE_TRACE_IDLE_MS: 30_000,
      SERVICE_SAMPLING_BUFFER_SLOTS: 15_000,
      ...options.sampling,
    },
    logger: createLogger('api-test', 'silent'),
    log,
    store: storeOfOne(clickhouse),
    gatewayRoutes: openRoutes(
      {
        SERVICE_LLM_BASE_URL: options.llmUrl,
        SERVICE_LLM_API_KEY: options.llmKey,
        SERVICE_ANTHROPIC_BASE_URL: options.anthropicUrl,
        SERVICE_ANTHROPIC_API_KEY: options.anthropicKey,
        SERVICE_GATEWAY_ROUTES: options.gateway?.routes,
      },
      options.gateway?.keys ?? {},
    ),
    now: options.now ?? Date.now,
    show: () => undefined,
    waits: options.waits ?? PATIENT,
  });
  const server = httpServer(api.listener);
  const port = await listen(server, '127.0.0.1', 0);
  const grpcPort = api.grpc === null ? 0 : await listen(api.grpc.server, '127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    grpcPort,
    log,
    async close() {
      api.endLive();
      await Promise.all([closeGracefully(server), api.grpc?.closeGracefully()]);
      await api.flush();
      api.close();
      await nc.close();
      await clickhouse.close();
    },
  };
}

/** Claims of a token. The token expires after one hour unless `exp` is set. */
export interface TestClaims {
  sub: string;
  email?: string;
  [claim: string]: unknown;
}

/**
 * Returns a person's token, signed as an issuer with JWT_SECRET signs it. Send it with asUser().
 */
export async function tokenOf(claims: TestClaims, secret = JWT_SECRET): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ iat: now, exp: now + 3600, ...claims })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(new TextEncoder().encode(secret));
}

/**
 * Returns headers that call as a person, in the test's organization unless `org` names another.
 * They replace the API key of call().
 */
export function asUser(token: string, org = ORG): Record<string, string | undefined> {
  return { 'X-Org-Api-Key': undefined, 'X-Org-Id': org, Authorization: `Bearer ${token}` };
}

/** A body that call() sends unchanged. */
export type RawBody = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The body as JSON; null if it is not JSON. */
  json: Record<string, unknown> | null;
}

interface CallOptions {
  body?: unknown;
  raw?: RawBody;
  headers?: Record<string, string | undefined>;
  /** Disables the retry of an ingest request that the log does not confirm in time. */
  once?: boolean;
}

/**
 * Calls an API with the key of the test's organization. `headers` override it; the value undefined
 * omits a header. An ingest request that the log does not confirm in time is sent again, as clients
 * do: on a busy machine a late confirmation is not a fault.
 */
export async function call(
  api: { url: string },
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const repeats =
    method === 'POST' && path.includes('/ingest/') && options.once !== true && !(options.raw instanceof ReadableStream);
  const send = () => callOnce(api, method, path, options);
  return repeats ? confirmed(send, isUnconfirmed) : send();
}

const isUnconfirmed = ({ status, json }: Answer): boolean =>
  status === 502 && String(json?.['detail']).startsWith('The ingest log did not confirm');

async function callOnce(api: { url: string }, method: string, path: string, options: CallOptions): Promise<Answer> {
  const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const response = await fetch(api.url + path, {
    method,
    headers: present({
      'X-Org-Api-Key': KEY,
      'X-Org-Id': ORG,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...options.headers,
    }),
    ...(body === undefined ? {} : { body, duplex: 'half' as const }),
  });
  const text = await response.text();
  let json: Record<string, unknown> | null = null;
  try {
    json = JSON.parse(text) as Record<string, unknown>;
  } catch {
    json = null;
  }
  return { status: response.status, headers: response.headers, text, json };
}

function present(headers: Record<string, string | undefined>): [string, string][] {
  return Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
}

/** Returns a valid custom event. */
export const anEvent = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: 'step',
  outcome: 'success',
  duration_ms: 5,
  ...fields,
});

export const INGEST = `/orgs/${ORG}/ingest`;
