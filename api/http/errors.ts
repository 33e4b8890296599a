// The error codes with their statuses, the one error that the API throws on purpose, and the
// translation of every other error into it. A client sees {detail, request_id, code}; causes,
// stacks and SQL appear only in the log.
import { z } from 'zod';

/** Status of every error code. */
export const STATUS_OF = {
  agent_already_registered: 409,
  agent_not_found: 404,
  api_key_not_found: 404,
  conflict: 409,
  cross_org_access: 403,
  dataset_not_found: 404,
  decode_failed: 422,
  eval_not_found: 404,
  expired: 410,
  forbidden: 403,
  idempotency_in_progress: 409,
  idempotency_key_reused: 422,
  incident_not_found: 404,
  internal_error: 500,
  invalid_framework: 422,
  invalid_register_token: 403,
  invalid_request: 422,
  invalid_rubric: 422,
  invalid_threshold: 422,
  job_not_found: 404,
  judge_not_found: 404,
  judge_quota_exceeded: 429,
  member_not_found: 404,
  method_not_allowed: 405,
  not_found: 404,
  not_implemented: 501,
  org_not_found: 404,
  payload_too_large: 413,
  payment_required: 402,
  prompt_not_found: 404,
  rate_limited: 429,
  replay_failed: 422,
  span_not_found: 404,
  text_not_found: 404,
  trace_not_found: 404,
  unauthenticated: 401,
  unsupported_api_version: 422,
  unsupported_media_type: 415,
  upstream_not_configured: 503,
  upstream_unavailable: 502,
  webhook_not_found: 404,
} as const;
export type ErrorCode = keyof typeof STATUS_OF;

/** Body of every error response. */
export const errorBody = z
  .object({
    detail: z.string().describe('What is wrong, for people'),
    request_id: z.string().describe('The same as the X-Request-Id header'),
    code: z.enum(Object.keys(STATUS_OF) as [ErrorCode, ...ErrorCode[]]).describe('Stable error code, for programs'),
  })
  .meta({ id: 'Error' });

export interface ApiErrorOptions {
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/** An error for the client. `detail` is public; `cause` is only logged. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, detail: string, options: ApiErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ApiError';
    this.code = code;
    this.detail = detail;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return STATUS_OF[this.code];
  }
}

/**
 * Classifies an error of a backing store: `unavailable` when it cannot be reached, `refused` when
 * it rejected a statement; null for any other error.
 */
export type StoreErrorClassifier = (error: unknown) => 'unavailable' | 'refused' | null;

/**
 * Returns the error of the contract for whatever was thrown: 502 for a store that cannot be
 * reached, 422 for a failed zod check, 404 for a path that cannot be decoded, 500 with a fixed text
 * for anything else.
 */
export function toApiError(error: unknown, classifyStore: StoreErrorClassifier): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof z.ZodError) return new ApiError('invalid_request', describeIssues(error), { cause: error });
  if (error instanceof URIError)
    return new ApiError('not_found', 'The path contains an invalid percent-encoding.', { cause: error });
  if (classifyStore(error) === 'unavailable') {
    return new ApiError('upstream_unavailable', 'A backing store cannot be reached. Try again.', { cause: error });
  }
  return new ApiError('internal_error', 'Internal error. Quote the request_id when you report it.', {
    cause: error,
  });
}

/** Returns one line for a failed check: the first invalid field and what it accepts. */
export function describeIssues(error: z.ZodError, prefix = ''): string {
  const issue = error.issues[0];
  if (issue === undefined) return `${prefix === '' ? 'request' : prefix}: is not valid`;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const path = [
    ...(prefix === '' ? [] : [prefix]),
    ...issue.path.map(String),
    ...(unknown === undefined ? [] : [unknown]),
  ];
  const field = path.reduce(
    (text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
  const said = unknown === undefined ? issue.message.replace(/^Invalid input: /, '') : 'is not a field of this request';
  return `${field === '' ? 'body' : field}: ${said}`;
}
