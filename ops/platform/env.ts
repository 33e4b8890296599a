// The settings of the service: each process parses them once, freezes them and passes them on in
// parts. No other module reads process.env.
import { z } from 'zod';
import { LOG_STREAMS_MAX } from '../../schemas/records/log_layout.ts';
import { shardsSetting } from '../../schemas/shards.ts';

const boolean = z.enum(['true', 'false']).transform((text) => text === 'true');
const integer = (min: number, max: number) =>
  z.coerce
    .number({ error: `must be a whole number from ${min} to ${max}` })
    .int()
    .min(min)
    .max(max);
const url = (...schemes: string[]) =>
  z.string().refine((text) => schemes.includes(URL.parse(text)?.protocol.slice(0, -1) ?? ''), {
    error: `must be a URL beginning with ${schemes.join(':// or ')}://`,
  });
const natsUrls = z
  .string()
  .refine((text) => text.split(',').every((part) => /^((nats|tls):\/\/)?[^\s/]+$/.test(part.trim())), {
    error: 'must be nats://host:port, comma-separated for a cluster',
  });

/** Returns the 32 bytes of a key written in hex or base64; null when the text is no key. */
export function decodeKey(text: string): Buffer | null {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  const bytes = /^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  return bytes.length === 32 ? bytes : null;
}

/**
 * Returns true for an origin of a web page, written exactly as browsers write it in the Origin
 * header.
 */
function isOrigin(text: string): boolean {
  const parsed = URL.parse(text);
  return (
    parsed !== null &&
    (parsed.protocol === 'https:' || parsed.protocol === 'http:') &&
    parsed.origin === text &&
    !text.includes('*')
  );
}

/** Query parameters that the URL of an object store may have. */
const STORE_PARAMS = new Set(['endpoint', 'region']);

function isObjectStore(text: string): boolean {
  const parsed = URL.parse(text);
  if (parsed === null || parsed.username !== '' || parsed.hash !== '') return false;
  if (parsed.protocol === 'file:') return parsed.hostname === '' && parsed.pathname.length > 1 && parsed.search === '';
  const endpoint = parsed.searchParams.get('endpoint');
  return (
    parsed.protocol === 's3:' &&
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(parsed.hostname) &&
    [...parsed.searchParams.keys()].every((name) => STORE_PARAMS.has(name)) &&
    (endpoint === null || ['http:', 'https:'].includes(URL.parse(endpoint)?.protocol ?? ''))
  );
}

/** Settings whose names another system defines. */
const FOREIGN = new Set(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);

/** Each stream of the ingest log holds at least two messages of the maximum size. */
const LOG_STREAM_BYTES_MIN = 16 * 1024 * 1024;

const schema = z.object({
  SERVICE_ENV: z.enum(['development', 'production']).default('development'),
  SERVICE_HOST: z.string().min(1).default('127.0.0.1'),
  SERVICE_PORT: integer(0, 65535).default(8080),
  SERVICE_DRAIN_DELAY_MS: integer(0, 60_000).default(0),
  /**
   * Address at which a worker serves /metrics, /healthz and /readyz. API processes include its
   * metrics in theirs only when it is the loopback.
   */
  SERVICE_PIPELINE_HOST: z.string().min(1).default('127.0.0.1'),
  SERVICE_PIPELINE_PORT: integer(0, 65535).default(0),
  SERVICE_DATA_DIR: z.string().min(1).default('./data'),
  SERVICE_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  SERVICE_NATS_URL: natsUrls.optional(),
  SERVICE_NATS_REPLICAS: integer(1, 5).default(1),
  SERVICE_NATS_SYNC: z
    .string()
    .regex(/^(always|[0-9]+(ms|s|m))$/, { error: 'must be always or a duration such as 200ms, 1s, 2m' })
    .default('always'),
  SERVICE_LOG_MAX_BYTES: integer(LOG_STREAM_BYTES_MIN, 2 ** 50).default(16 * 1024 ** 3),
  /** Streams that share the partitions and the bytes of the ingest log. */
  SERVICE_LOG_STREAMS: integer(1, LOG_STREAMS_MAX).default(1),
  SERVICE_CLICKHOUSE_URL: url('http', 'https').optional(),
  SERVICE_CLICKHOUSE_PORT: integer(0, 65535).default(8123),
  /**
   * Folder of an embedded ClickHouse on this machine; npm start sets it. Rows are then synced once
   * per checkpoint, not file by file.
   */
  SERVICE_CLICKHOUSE_DATA_DIR: z.string().min(1).optional(),
  SERVICE_CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^[A-Za-z0-9_.-]+$/, { error: 'must be the name of a cluster: letters, digits, _ . -' })
    .optional(),
  /** Shards of ClickHouse, which replace SERVICE_CLICKHOUSE_URL; see parseShards. */
  SERVICE_CLICKHOUSE_SHARDS: shardsSetting.optional(),
  /** True to make the embedded engine record every statement and every new part, for a day. */
  SERVICE_CLICKHOUSE_QUERY_LOG: boolean.default(false),
  SERVICE_CLICKHOUSE_ANALYST_PASSWORD: z.string().min(8, { error: 'must have at least 8 characters' }).optional(),
  /**
   * Ingest answers 429 while the disk that holds this folder is low. npm start sets it to its data
   * folder.
   */
  SERVICE_DISK_GUARD_DIR: z.string().min(1).optional(),
  /**
   * The nice value of the pipeline and the embedded engine: how far their CPU priority is below the
   * API's. Where the engine has CAP_SYS_NICE, statements of the pipeline, merges and mutations have
   * twice this value in it.
   */
  SERVICE_LANDING_NICE: integer(0, 19).default(5),
  SERVICE_PARTITIONS: integer(1, 256).default(8),
  SERVICE_DEDUP_WINDOW_HOURS: integer(1, 720).default(24),
  SERVICE_ADMIN_TOKEN: z.string().min(16, { error: 'must have at least 16 characters' }).optional(),
  SERVICE_BOOTSTRAP_ORG_ID: z
    .string()
    .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,128}$/, {
      error: 'must be 1 to 128 of letters, digits, _ . -, other than . and ..',
    })
    .default('org_local'),
  SERVICE_BOOTSTRAP_API_KEY: z
    .string()
    .regex(/^sk_svc_[A-Za-z0-9_-]{16,}$/, { error: 'must be sk_svc_ followed by at least 16 letters or digits' })
    .optional(),
  SERVICE_JWT_SECRET: z.string().min(32, { error: 'must have at least 32 characters' }).optional(),
  /** URL of the key set of an OIDC provider; it replaces SERVICE_JWT_SECRET. */
  SERVICE_JWT_JWKS_URL: url('https', 'http')
    .refine((text) => URL.parse(text)?.username === '', {
      error: 'must be a URL without a user, as a key set is public',
    })
    .optional(),
  SERVICE_JWT_ISSUER: z.string().min(1).optional(),
  SERVICE_JWT_AUDIENCE: z.string().min(1).optional(),
  /** Client of the OIDC provider by which people log in to the portal. */
  SERVICE_OIDC_CLIENT_ID: z.string().min(1).max(512).optional(),
  SERVICE_OIDC_CLIENT_SECRET: z.string().min(1).max(2048).optional(),
  /** Origin at which browsers reach the portal, for the login at the provider and for links in mails. */
  SERVICE_PUBLIC_URL: z
    .string()
    .refine(isOrigin, { error: 'must be an origin as browsers write it, such as https://millrace.example.com' })
    .optional(),
  SERVICE_SMTP_URL: url('smtp', 'smtps').optional(),
  SERVICE_MAIL_FROM: z
    .string()
    .regex(/^([^\r\n<>"]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/, {
      error: 'must be an address: name@host or Name <name@host>',
    })
    .default('Millrace <millrace@localhost>'),
  /**
   * URL of an OpenAI-compatible API, including /v1, for judges, dataset runs, replay and the
   * gateway.
   */
  SERVICE_LLM_BASE_URL: url('http', 'https')
    .refine((text) => URL.parse(text)?.username === '', {
      error: 'must be a URL without a user; the key is SERVICE_LLM_API_KEY',
    })
    .optional(),
  SERVICE_LLM_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, { error: 'must be printable characters without spaces' })
    .optional(),
  /** URL of Anthropic's API or of one that is compatible with it, with or without /v1, for the gateway. */
  SERVICE_ANTHROPIC_BASE_URL: url('http', 'https')
    .refine((text) => URL.parse(text)?.username === '', {
      error: 'must be a URL without a user; the key is SERVICE_ANTHROPIC_API_KEY',
    })
    .optional(),
  SERVICE_ANTHROPIC_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, { error: 'must be printable characters without spaces' })
    .optional(),
  /**
   * Path of a JSON file that routes models to upstreams of the gateway; see
   * ops/platform/llm/routes.ts.
   */
  SERVICE_GATEWAY_ROUTES: z.string().min(1).optional(),
  /**
   * Maximum number of gateway calls that one organization may have in progress in one API process;
   * further calls get a 429.
   */
  SERVICE_GATEWAY_CALLS_PER_ORG: integer(1, 10_000).default(256),
  /**
   * Key that seals the secrets which have to be read again, such as webhook secrets. Every process
   * takes the same key; npm start generates and stores one.
   */
  SERVICE_ENCRYPTION_KEY: z
    .string()
    .refine((text) => decodeKey(text) !== null, { error: 'must be 32 bytes as base64 or as 64 hex digits' })
    .optional(),
  /** URL of cold storage. Unset: a folder of SERVICE_DATA_DIR. */
  SERVICE_OBJECT_STORE: z
    .string()
    .refine((text) => isObjectStore(text), { error: 'must be file:///dir or s3://bucket/prefix?endpoint=…&region=…' })
    .optional(),
  AWS_ACCESS_KEY_ID: z.string().min(1).optional(),
  AWS_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  SERVICE_SAMPLING_PROFILE: z.enum(['full', 'balanced', 'aggressive']).default('full'),
  SERVICE_SAMPLING_ENABLED: boolean.default(true),
  SERVICE_SAMPLING_TAIL: boolean.default(false),
  SERVICE_SAMPLING_BUFFER_SLOTS: integer(1, 1_000_000).default(15_000),
  SERVICE_SAMPLING_SLOW_MS: integer(0, 86_400_000).default(5000),
  SERVICE_TRACE_GRACE_MS: integer(1, 3_600_000).default(1000),
  SERVICE_TRACE_IDLE_MS: integer(1, 86_400_000).default(30_000),
  SERVICE_LANGFUSE_OPEN_MS: integer(1000, 3_600_000).default(30_000),
  SERVICE_MAX_BODY_BYTES: integer(1024, 7 * 1024 * 1024).default(5_242_880),
  /**
   * Origins whose pages may call every path. Unset: none. Pages of any origin may call ingest/app
   * and OTLP.
   */
  SERVICE_CORS_ORIGINS: z
    .string()
    .transform((text) => text.split(',').map((part) => part.trim()))
    .refine((origins) => origins.every(isOrigin), {
      error:
        'must be origins as browsers write them, comma-separated, such as https://app.example.com,http://localhost:3000',
    })
    .default([]),
  /** Port for OTLP over gRPC, in plain text. Unset: off. */
  SERVICE_OTLP_GRPC_PORT: integer(0, 65535).optional(),
  SERVICE_APP_INGEST_PER_TENANT_RPM: integer(1, 10_000_000).default(5000),
  SERVICE_PORTAL: boolean.default(true),
  /** Folder of the portal's built files. npm start sets it; unset elsewhere: no portal. */
  SERVICE_PORTAL_DIR: z.string().min(1).optional(),
  SERVICE_OPEN: boolean.default(true),
});

export type Env = Readonly<z.infer<typeof schema>>;

/**
 * Settings that cannot be used. The message has one line per problem, which names the variable,
 * what it got and what it takes.
 */
export class EnvError extends Error {}

/** Settings whose text must not be printed when it is wrong. */
const SECRET = /TOKEN|KEY|SECRET|PASSWORD|_URL$|_SHARDS$/;

/**
 * Placeholders that examples have where a secret belongs. Whether another secret is strong enough
 * is for its owner to judge.
 */
const PLACEHOLDER = /change[-_ ]?(me|this|it)|(replace|put|insert)[-_ ]?(me|this|your)|placeholder|your[-_ ].*here/i;

/** Returns true if the settings name a ClickHouse server. */
export const hasStore = (env: Pick<Env, 'SERVICE_CLICKHOUSE_URL' | 'SERVICE_CLICKHOUSE_SHARDS'>): boolean =>
  env.SERVICE_CLICKHOUSE_URL !== undefined || env.SERVICE_CLICKHOUSE_SHARDS !== undefined;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?(::1|::ffff:127(\.\d{1,3}){3})\]?)$/i;

/** Returns true for a host name or address that only this machine reaches. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/**
 * Returns true where login links work: in development, unless an identity provider names the people. The links log in as
 * the owner of the first organization.
 */
export function hasLocalLogin(env: Pick<Env, 'SERVICE_ENV' | 'SERVICE_JWT_JWKS_URL'>): boolean {
  return env.SERVICE_ENV === 'development' && env.SERVICE_JWT_JWKS_URL === undefined;
}

/** The client of the OIDC provider by which people log in to the portal. */
export interface OidcClient {
  issuer: string;
  client_id: string;
  client_secret: string;
  /** Origin of the portal, without a slash at the end. */
  public_url: string;
}

/** Returns the client; null where the settings name none. */
export function oidcClientOf(
  env: Pick<
    Env,
    | 'SERVICE_OIDC_CLIENT_ID'
    | 'SERVICE_OIDC_CLIENT_SECRET'
    | 'SERVICE_PUBLIC_URL'
    | 'SERVICE_JWT_ISSUER'
    | 'SERVICE_JWT_JWKS_URL'
  >,
): OidcClient | null {
  const { SERVICE_OIDC_CLIENT_ID: client_id, SERVICE_OIDC_CLIENT_SECRET: client_secret } = env;
  const { SERVICE_PUBLIC_URL: public_url, SERVICE_JWT_ISSUER: issuer, SERVICE_JWT_JWKS_URL: keys } = env;
  return client_id === undefined ||
    client_secret === undefined ||
    public_url === undefined ||
    issuer === undefined ||
    keys === undefined
    ? null
    : { issuer, client_id, client_secret, public_url };
}

/** Returns the problem that the settings name the store twice; none if they do not. */
const problemsOfStore = (settings: z.infer<typeof schema>): string[] =>
  settings.SERVICE_CLICKHOUSE_SHARDS !== undefined && settings.SERVICE_CLICKHOUSE_URL !== undefined
    ? ['SERVICE_CLICKHOUSE_URL: got a value beside SERVICE_CLICKHOUSE_SHARDS, which names all servers']
    : [];

/** Returns the problem that the bytes of the ingest log do not suffice for its streams; none if they do. */
function problemsOfLog(settings: z.infer<typeof schema>): string[] {
  const [bytes, streams] = [settings.SERVICE_LOG_MAX_BYTES, settings.SERVICE_LOG_STREAMS];
  const needed = streams * LOG_STREAM_BYTES_MIN;
  return bytes >= needed
    ? []
    : [`SERVICE_LOG_MAX_BYTES: got "${bytes}"; must be at least ${needed} for SERVICE_LOG_STREAMS=${streams}`];
}

/** Returns what a login at the OIDC provider lacks, one line per problem; none where no client is set. */
function problemsOfLogin(settings: z.infer<typeof schema>): string[] {
  if (settings.SERVICE_OIDC_CLIENT_ID === undefined) return [];
  const needed = [
    'SERVICE_OIDC_CLIENT_SECRET',
    'SERVICE_PUBLIC_URL',
    'SERVICE_JWT_ISSUER',
    'SERVICE_JWT_JWKS_URL',
  ] as const;
  return needed
    .filter((name) => settings[name] === undefined)
    .map((name) => `${name}: got nothing; the login of SERVICE_OIDC_CLIENT_ID needs it`);
}

/**
 * Parses settings from a process environment. An empty value counts as unset. Without SERVICE_ENV,
 * a SERVICE_HOST that other machines reach counts as production, so that a forgotten variable
 * exposes no service with generated secrets.
 * @throws EnvError with every problem at once
 */
export function parseEnv(source: Record<string, string | undefined>): Env {
  const given = Object.fromEntries(
    Object.entries(source).filter(
      ([name, value]) => (name.startsWith('SERVICE_') || FOREIGN.has(name)) && value !== undefined && value !== '',
    ),
  );
  const host = given['SERVICE_HOST'];
  const isAssumed = given['SERVICE_ENV'] === undefined && host !== undefined && !isLoopback(host);
  if (isAssumed) given['SERVICE_ENV'] = 'production';
  const result = schema.safeParse(given);
  const problems = result.success
    ? []
    : result.error.issues.map((issue) => {
        const name = String(issue.path[0]);
        const got = SECRET.test(name) ? `a value of ${given[name]?.length ?? 0} characters` : `"${given[name] ?? ''}"`;
        return `${name}: got ${got}; ${describe(issue)}`;
      });
  if (result.success)
    problems.push(...problemsOfStore(result.data), ...problemsOfLog(result.data), ...problemsOfLogin(result.data));
  if (result.success && result.data.SERVICE_ENV === 'production') {
    const missing = problemsInProduction(result.data);
    if (isAssumed && missing.length > 0)
      problems.push(
        `SERVICE_ENV: got nothing; with SERVICE_HOST "${host}", which other machines reach, it counts as production (development takes generated secrets there too)`,
      );
    problems.push(...missing);
  }
  if (problems.length > 0) throw new EnvError(problems.join('\n'));
  return Object.freeze(schema.parse(given));
}

/** Returns what these settings lack for production, one line per problem. */
function problemsInProduction(settings: z.infer<typeof schema>): string[] {
  const problems: string[] = [];
  for (const name of [
    'SERVICE_ADMIN_TOKEN',
    'SERVICE_BOOTSTRAP_API_KEY',
    'SERVICE_JWT_SECRET',
    'SERVICE_CLICKHOUSE_ANALYST_PASSWORD',
  ] as const) {
    // With a provider's key set, no secret signs tokens.
    if (name === 'SERVICE_JWT_SECRET' && settings.SERVICE_JWT_JWKS_URL !== undefined) continue;
    const value = settings[name];
    if (value === undefined)
      problems.push(`${name}: got nothing; production takes a secret of your own and generates none`);
    else if (PLACEHOLDER.test(value))
      problems.push(`${name}: got the placeholder of an example; production takes a secret of your own`);
  }
  if (settings.SERVICE_JWT_JWKS_URL === undefined) return problems;
  if (/^http:/i.test(settings.SERVICE_JWT_JWKS_URL))
    problems.push(
      'SERVICE_JWT_JWKS_URL: got a URL without TLS; production takes https:// only, as whoever serves the keys can sign tokens',
    );
  for (const [name, claim] of [
    ['SERVICE_JWT_ISSUER', 'iss'],
    ['SERVICE_JWT_AUDIENCE', 'aud'],
  ] as const)
    if (settings[name] === undefined)
      problems.push(
        `${name}: got nothing; production with SERVICE_JWT_JWKS_URL takes the ${claim} of its tokens, as a provider signs tokens for other services too`,
      );
  return problems;
}

function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'too_small') return `must be ${issue.minimum} or more`;
  if (issue.code === 'too_big') return `must be ${issue.maximum} or less`;
  return issue.message;
}
