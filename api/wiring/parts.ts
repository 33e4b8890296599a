// The settings, clients and functions that every part of the API's wiring takes.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Env } from '../../ops/platform/env.ts';
import type { GatewayRoutes } from '../../ops/platform/llm/routes.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Store } from '../../sql/client/shards.ts';

/** The settings that an API process reads. */
export type ApiSettings = Pick<
  Env,
  | 'SERVICE_ENV'
  | 'SERVICE_PARTITIONS'
  | 'SERVICE_BOOTSTRAP_ORG_ID'
  | 'SERVICE_BOOTSTRAP_API_KEY'
  | 'SERVICE_ADMIN_TOKEN'
  | 'SERVICE_JWT_SECRET'
  | 'SERVICE_JWT_JWKS_URL'
  | 'SERVICE_JWT_ISSUER'
  | 'SERVICE_JWT_AUDIENCE'
  | 'SERVICE_ENCRYPTION_KEY'
  | 'SERVICE_CLICKHOUSE_CLUSTER'
  | 'SERVICE_DISK_GUARD_DIR'
  | 'SERVICE_MAX_BODY_BYTES'
  | 'SERVICE_CORS_ORIGINS'
  | 'SERVICE_LLM_BASE_URL'
  | 'SERVICE_LLM_API_KEY'
  | 'SERVICE_OIDC_CLIENT_ID'
  | 'SERVICE_OIDC_CLIENT_SECRET'
  | 'SERVICE_PUBLIC_URL'
  | 'SERVICE_SMTP_URL'
  | 'SERVICE_OTLP_GRPC_PORT'
  | 'SERVICE_PORTAL'
  | 'SERVICE_PORTAL_DIR'
  | 'SERVICE_GATEWAY_CALLS_PER_ORG'
  | 'SERVICE_APP_INGEST_PER_TENANT_RPM'
  | 'SERVICE_SAMPLING_PROFILE'
  | 'SERVICE_SAMPLING_ENABLED'
  | 'SERVICE_SAMPLING_SLOW_MS'
  | 'SERVICE_SAMPLING_TAIL'
  | 'SERVICE_TRACE_GRACE_MS'
  | 'SERVICE_TRACE_IDLE_MS'
  | 'SERVICE_SAMPLING_BUFFER_SLOTS'
>;

export interface ApiParts {
  env: ApiSettings;
  logger: Logger;
  log: Log;
  store: Store;
  /** Upstreams of the gateway by model. */
  gatewayRoutes: GatewayRoutes;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Shows a secret that this process has generated, once. */
  show: (line: string) => void;
  /** Bounds on the waits for NATS. Unset: the bounds of the API contract. */
  waits?: NatsWaits;
}

/** Bounds on the waits of a request, in milliseconds. */
export interface NatsWaits {
  /** Maximum wait for the confirmation of an ingest; replaces COMMIT_MS_MAX. */
  commitMsMax: number;
  /** Maximum wait for the record of an idempotency key; replaces STORE_MS_MAX. */
  keyMsMax: number;
}

/** The parts with the state of the NATS connection and the function that reports problems. */
export interface WiringParts extends ApiParts {
  /** Reads all shards of the store. */
  clickhouse: ClickHouse;
  /** True while NATS is connected. */
  tracked: { readonly connected: boolean };
  onProblem: ReportProblem;
}

/** Returns true in development, where cookies need no TLS, tokens are shown, and webhooks may go to this machine. */
export const isDevelopment = ({ env }: Pick<WiringParts, 'env'>): boolean => env.SERVICE_ENV === 'development';

/** Returns the OIDC provider whose tokens the service accepts; undefined where none is configured. */
export const issuerOf = ({ SERVICE_JWT_ISSUER, SERVICE_JWT_JWKS_URL }: ApiSettings): string | undefined =>
  SERVICE_JWT_JWKS_URL === undefined ? undefined : SERVICE_JWT_ISSUER;
