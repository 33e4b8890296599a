// Requests to the API, typed by its OpenAPI document. `apiQuery` describes a read for react-query,
// `send` performs a change. Both throw RequestError; a request that is refused because the session
// ended waits for the next login and then runs again.
import createClient from 'openapi-fetch';
import type { paths } from './contract.d.ts';
import { takeEarly } from './early_requests.ts';
import { errorOfAnswer, errorOfThrown, RequestError } from './error.ts';
import { noteFailure } from './health.ts';
import { operatorLogin, personLogin } from './login_wait.ts';
import { watchSlowness } from './slow.ts';

type Method = 'get' | 'put' | 'post' | 'delete' | 'patch';
/** Paths that have a method. */
type PathsWithMethod<P, M extends Method> = {
  [K in keyof P]: P[K] extends Record<M, { responses: unknown }> ? K : never;
}[keyof P];
type GetPath = PathsWithMethod<paths, 'get'>;
type Operation<P extends keyof paths, M extends Method> = paths[P][M];

/** Body of a success, `{data, meta}` for nearly all operations. */
type Success<O> = O extends { responses: infer R }
  ? {
      [S in keyof R]: S extends 200 | 201 | 202
        ? R[S] extends { content: { 'application/json': infer B } }
          ? B
          : never
        : never;
    }[keyof R]
  : never;
type Defined<T> = { [K in keyof T as T[K] extends undefined ? never : K]: T[K] };
/** The path and query parameters of an operation. */
export type Params<O> = O extends { parameters: infer P } ? Defined<Pick<P, keyof P & ('path' | 'query')>> : never;
type Body<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;

/** Body of the success of a GET. */
export type Answer<P extends GetPath> = Success<Operation<P, 'get'>>;

/** Options of a request beside its parameters. */
interface RequestExtras {
  signal?: AbortSignal;
  headers?: Record<string, string>;
  body?: unknown;
  /** True: a 401 is thrown instead of asking for a login. */
  throw401?: boolean;
}

const client = createClient<paths>({
  baseUrl: typeof location === 'undefined' ? '' : location.origin,
  querySerializer: { array: { style: 'form', explode: false } },
  fetch: (request) => takeEarly(request) ?? fetch(request),
});
type Untyped = (
  method: string,
  path: string,
  init: Record<string, unknown>,
) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

/**
 * Performs one request and returns the body of its success.
 * @throws RequestError
 */
async function request(
  method: Method,
  path: string,
  params: object,
  { throw401 = false, ...extras }: RequestExtras,
): Promise<unknown> {
  const login = path.startsWith('/admin/') ? operatorLogin : personLogin;
  for (;;) {
    const { response, data, error } = await answerOf(method, path, { params, ...extras });
    if (response.ok) return data;
    if (response.status !== 401 || throw401 || !login.hadSession())
      throw noted(errorOfAnswer(response.status, error, response.headers));
    login.end();
    await login.wait(extras.signal);
  }
}

async function answerOf(method: Method, path: string, init: Record<string, unknown>): ReturnType<Untyped> {
  const done = method === 'get' ? watchSlowness() : null;
  try {
    return await (client.request as Untyped)(method, path, init);
  } catch (thrown) {
    throw noted(errorOfThrown(thrown));
  } finally {
    done?.();
  }
}

/** Returns an error after it was noted whether the service may be away. */
function noted(error: unknown): unknown {
  if (error instanceof RequestError) noteFailure(error);
  return error;
}

const orgHeader = (org_id: string | null): Record<string, string> => (org_id === null ? {} : { 'X-Org-Id': org_id });

/**
 * Performs a GET.
 * @param org_id organization of the request; null for the requests of a person
 * @throws RequestError
 */
export async function get<P extends GetPath>(
  org_id: string | null,
  path: P,
  params: Params<Operation<P, 'get'>>,
  extras: Pick<RequestExtras, 'signal' | 'throw401'> = {},
): Promise<Answer<P>> {
  return (await request('get', path, params, { ...extras, headers: orgHeader(org_id) })) as Answer<P>;
}

/**
 * Returns the key and the function of a read, for useQuery and prefetchQuery. The key is
 * [org_id, path template, parameters]: the template names the operation, and a topic of GET /v1/live
 * invalidates by it.
 */
export function apiQuery<P extends GetPath>(
  org_id: string | null,
  path: P,
  params: Params<Operation<P, 'get'>>,
): {
  queryKey: readonly [string | null, P, Params<Operation<P, 'get'>>];
  queryFn: (context: { signal: AbortSignal }) => Promise<Answer<P>>;
} {
  return {
    queryKey: [org_id, path, params] as const,
    queryFn: ({ signal }) => get(org_id, path, params, { signal }),
  };
}

/**
 * Performs a change.
 * @param idempotencyKey for a POST: made once when the form opens (randomId), so that a second click does nothing
 * @throws RequestError
 */
export async function send<M extends Exclude<Method, 'get'>, P extends PathsWithMethod<paths, M>>(
  org_id: string | null,
  method: M,
  path: P,
  options: {
    params?: Params<Operation<P, M>>;
    body?: Body<Operation<P, M>>;
    idempotencyKey?: string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    throw401?: boolean;
  } = {},
): Promise<Success<Operation<P, M>>> {
  const { params = {}, idempotencyKey, headers = {}, ...extras } = options;
  const key: Record<string, string> = idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey };
  return (await request(method, path, params, {
    ...extras,
    headers: { ...orgHeader(org_id), ...key, ...headers },
  })) as Success<Operation<P, M>>;
}
