// The paths that imitate other services, for their clients. It accepts the credentials of those
// clients: HTTP Basic below /api/public (Langfuse: any public key, the API key as secret), and
// x-api-key below /langsmith; the header is rewritten into the form that the rest of the API reads,
// and no other path accepts either form. It also says what to use instead of a path of those services
// that is not supported.
import type { IncomingMessage } from 'node:http';
import { ApiError } from './errors.ts';

const LANGFUSE_ROOT = '/api/public';
const LANGSMITH_ROOT = '/langsmith';
/** Longest header that is decoded: a key has a few dozen characters. */
const BASIC_CHARS_MAX = 4096;

/** Returns true for a path below a root. */
const isBelow = (root: string, url: string): boolean =>
  url.startsWith(root) && /^(?:[/?#]|$)/.test(url.slice(root.length, root.length + 1));

/** Rewrites the credential of a request to one of the imitated services. */
export function takeForeignCredential(req: IncomingMessage): void {
  const { headers, url = '' } = req;
  if (isBelow(LANGFUSE_ROOT, url)) {
    const secret = basicSecret(headers.authorization);
    if (secret !== null) headers.authorization = `Bearer ${secret}`;
  } else if (isBelow(LANGSMITH_ROOT, url)) {
    const key = headers['x-api-key'];
    if (typeof key === 'string' && headers['x-org-api-key'] === undefined) headers['x-org-api-key'] = key;
  }
}

/** Returns the secret of an Authorization header with the scheme Basic; null for any other. */
function basicSecret(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length > BASIC_CHARS_MAX) return null;
  // Some exporters send the header as OTEL_EXPORTER_OTLP_HEADERS holds it, percent-encoded.
  const scheme = /^basic(?: |%20)/i.exec(authorization)?.[0];
  if (scheme === undefined) return null;
  const text = Buffer.from(authorization.slice(scheme.length).trim(), 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 ? null : text.slice(colon + 1);
}

/** What to use instead of a path of Langfuse or LangSmith, by how the rest of the path begins. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [/^\/(v\d\/)?(traces|observations)\b/, 'GET /v1/traces and GET /v1/traces/{trace_id}/tree'],
  [/^\/(v\d\/)?sessions\b/, 'GET /v1/sessions'],
  [/^\/(v\d\/)?(scores|feedback)\b/, 'GET and POST /v1/scores'],
  [/^\/(v\d\/)?metrics\b/, 'POST /v1/analytics/query'],
  [
    /^\/(v\d\/)?(datasets|dataset-items|dataset-run-items|examples|experiments)\b/,
    'POST /v1/datasets and POST /v1/datasets/{dataset_id}/run',
  ],
  [/^\/annotation-queues\b/, 'the annotation queues at /v1/annotation-queues'],
  [/^\/(v2\/)?prompts\b|^\/(commits|repos)\b/, 'the prompt registry at /v1/prompts'],
  [/^\/models\b/, 'PUT /orgs/{org_id}/prices for the prices of models'],
  [/^\/(projects|organizations|scim)\b/, 'the members and API keys below /orgs/{org_id}'],
  [/^\/runs\b/, 'GET /v1/traces and GET /v1/spans/search'],
  [/^\/media\b/, 'nothing: media are not stored'],
];

/**
 * Returns the error for a path below one of the imitated services that this service does not have;
 * null for any other path.
 */
export function unsupported(path: string): ApiError | null {
  const found = (
    [
      ['Langfuse', LANGFUSE_ROOT],
      ['LangSmith', LANGSMITH_ROOT],
    ] as const
  ).find(([, root]) => isBelow(root, path));
  if (found === undefined) return null;
  const [name, root] = found;
  const rest = path.slice(root.length);
  const instead = INSTEAD.find(([pattern]) => pattern.test(rest))?.[1] ?? 'the API that /docs describes';
  return new ApiError('not_implemented', `This path of ${name} is not supported. Use ${instead} instead.`);
}
