// How a slice declares its routes: path, who may call it, zod shapes in and out, handler. The declaration is all there is:
// mount.ts serves it, openapi.ts documents it. A handler gets checked input and returns data; it writes to the response
// itself only to stream.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { AuditDeclaration, AuditNotes } from './audit.ts';
import type { Resource } from './auth.ts';
import type {
  AnonymousCredential,
  Credential,
  OperatorCredential,
  OrgCredential,
  PersonCredential,
} from './credential.ts';
import type { Deprecated } from './deprecation.ts';
import type { ErrorCode } from './errors.ts';
import type { Access, Permission } from './permissions.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** What a handler gets. Times out of its hands: `signal` aborts when the caller goes away. */
export interface Context<Params, Query, Body, Who> {
  credential: Who;
  /** Org of the credential; the same as the path's where the path names one. Empty for persons, operators and public routes. */
  org_id: string;
  request_id: string;
  params: Params;
  query: Query;
  body: Body;
  req: IncomingMessage;
  res: ServerResponse;
  signal: AbortSignal;
  /** What the audit record of this mutation says beyond the declaration. */
  audit: AuditNotes;
}

/** Answered as {data, meta}. */
interface EnvelopeResult<Data> {
  /** Where it differs from the route's `status`. */
  status?: number;
  data: Data;
  /** Joins api_version, request_id and timestamp. */
  meta?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** Answered as it is, without an envelope. */
interface BareResult<Data> {
  status?: number;
  bare: Data;
  headers?: Record<string, string>;
}

/** What a handler returns that has written, and ended, the response itself. Headers are set by the handler; X-Request-Id is already there. */
export const STREAMED = Object.freeze({ streamed: true as const });

type Result<Data> = EnvelopeResult<Data> | BareResult<Data> | typeof STREAMED;

/** The path parameter, the query parameter or the field of the body that is the thing's id, or what finds it. */
export type ResourceName = { type: Resource['type'] } & (
  | { param: string }
  | { query: string }
  | { body: string }
  | { find: (org_id: string, params: Readonly<Record<string, unknown>>) => string | undefined }
);

interface Declaration {
  method: Method;
  /** Express pattern, e.g. /v1/traces/:trace_id/tree. */
  path: string;
  operation_id: string;
  summary: string;
  description?: string;
  /** Heading in the documentation. */
  tag: string;
  /** Status of a success; 200 unless given. */
  status?: 200 | 201 | 202;
  /** Other statuses of the same answer, with when they are given. */
  also?: Readonly<Partial<Record<200 | 503, string>>>;
  /** Meta fields beyond api_version, request_id and timestamp; `pageMeta` for lists. */
  meta?: z.ZodObject;
  /** Codes that this route can answer beyond those that any route of its kind can. */
  errors?: readonly ErrorCode[];
  /** Media types of a streamed success; application/json with an envelope unless given. */
  media?: readonly string[];
  /** A success is the bare object, not an envelope. */
  bare?: boolean;
  /** The answer holds a secret: what is kept for a replay is sealed with the caller's own credential. */
  secret?: boolean;
  /** Query parameters that are not declared are ignored instead of refused: for probes and scrapers that add their own. */
  any_query?: true;
  /** Example request body for the documentation. */
  example?: unknown;
  /**
   * What the audit log says of it; null for a POST that changes nothing (an export, a comparison). Every route that is not a
   * GET has to say one of the two.
   */
  audit?: AuditDeclaration | null;
  /** Where the request names the things on which a member can be granted what their role lacks; a grant on any of them counts. */
  resource?: ResourceName | readonly ResourceName[];
  /** What a member needs besides, by role or by a grant on this thing, where a grant and not their role lets them in. */
  grant_needs?: { permission: Permission; resource: ResourceName };
  /** Parts of this route that will go, by name; see deprecation.ts. */
  deprecated?: readonly Deprecated[];
}

/** A context whose types are erased. */
export type AnyContext = Context<unknown, unknown, unknown, Credential>;

/** A route as mount.ts and openapi.ts see it. */
export interface Route extends Declaration {
  access: Access;
  params: z.ZodType;
  query: z.ZodType;
  body: z.ZodType | null;
  response: z.ZodType;
  handler: (ctx: AnyContext) => Promise<Result<unknown>>;
}

interface Shapes<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  Who,
> extends Declaration {
  params?: P;
  query?: Q;
  /** Left out where the route takes no body. */
  body?: B;
  /** Of `data`, or of the whole answer for bare ones. */
  response: R;
  handler: (
    ctx: Context<z.output<P>, z.output<Q>, z.output<B>, Who>,
  ) => Result<z.input<NoInfer<R>>> | Promise<Result<z.input<NoInfer<R>>>>;
}

const empty = z.object({});
type Empty = typeof empty;

/** Declares a route of an org: the credential is the org's and has `permission`; a path that names another org is refused before the handler runs. */
export function defineRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, OrgCredential> & { permission: Permission }): Route {
  const { permission, ...rest } = shapes;
  return erase(rest, permission);
}

/** Declares a route of a person with a valid token, who need not be a member of any org. */
export function definePersonRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, PersonCredential>): Route {
  return erase(shapes, 'person');
}

/** Declares a route of the operator, who shows the admin token. */
export function defineOperatorRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, OperatorCredential>): Route {
  return erase(shapes, 'operator');
}

/** Declares a route that anybody may call. */
export function definePublicRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, AnonymousCredential>): Route {
  return erase(shapes, 'public');
}

/** The path as OpenAPI and the metrics write it: /v1/traces/{trace_id}/tree. */
export function templateOf(path: string): string {
  return path.replace(/:([a-z_]+)/g, '{$1}');
}

function erase<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  Who extends Credential,
>(shapes: Shapes<P, Q, B, R, Who>, access: Access): Route {
  const { handler, params, query, body, ...rest } = shapes;
  return {
    ...rest,
    access,
    params: params ?? empty,
    query: query ?? empty,
    body: body ?? null,
    // mount.ts parses with these very schemas and authorizes for this very access before it calls, so the erased context has these types.
    handler: async (ctx) => handler(ctx as Context<z.output<P>, z.output<Q>, z.output<B>, Who>),
  };
}

/** Query parameter that is a list: repeated (`tags=a&tags=b`), comma-separated (`tags=a,b`), or both. Empty parts are dropped. */
export function listParam<T extends z.ZodType>(item: T): z.ZodPreprocess<z.ZodArray<T>> {
  return z.preprocess((value) => {
    if (value === undefined) return value;
    const parts: unknown[] = Array.isArray(value) ? value : [value];
    return parts.flatMap((part) => (typeof part === 'string' ? part.split(',') : [part])).filter((part) => part !== '');
  }, z.array(item));
}
