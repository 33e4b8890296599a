// How a slice declares its routes: path, access, zod shapes of input and output, handler. The
// declaration is complete: mount.ts serves it, openapi/document.ts documents it. A handler gets checked
// input and returns data; it writes to the response itself only to stream.
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

/** The request as a handler sees it. `signal` aborts when the caller disconnects. */
export interface Context<Params, Query, Body, Who> {
  credential: Who;
  /**
   * Organization of the credential; equals the path's where the path names one. Empty for persons,
   * operators and public routes.
   */
  org_id: string;
  request_id: string;
  params: Params;
  query: Query;
  body: Body;
  req: IncomingMessage;
  res: ServerResponse;
  signal: AbortSignal;
  /** Adds to the audit record of this mutation. */
  audit: AuditNotes;
}

/** A response of the shape {data, meta}. */
interface EnvelopeResult<Data> {
  /** Status, where it differs from the route's. */
  status?: number;
  data: Data;
  /** Fields of meta besides api_version, request_id and timestamp. */
  meta?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** A response without an envelope. */
interface BareResult<Data> {
  status?: number;
  bare: Data;
  headers?: Record<string, string>;
}

/**
 * Result of a handler that has written and ended the response itself. The handler sets headers;
 * X-Request-Id is already set.
 */
export const STREAMED = Object.freeze({ streamed: true as const });

type Result<Data> = EnvelopeResult<Data> | BareResult<Data> | typeof STREAMED;

/**
 * The path parameter, query parameter or body field that holds the resource's id, or a function
 * that finds it.
 */
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
  /** Status of a success; 200 by default. */
  status?: 200 | 201 | 202 | 207;
  /** Other statuses of the same response, with when they are sent. */
  also?: Readonly<Partial<Record<200 | 202 | 207 | 503, string>>>;
  /** Meta fields besides api_version, request_id and timestamp; `pageMeta` for lists. */
  meta?: z.ZodObject;
  /** Error codes of this route besides those of every route of its kind. */
  errors?: readonly ErrorCode[];
  /** Media types of a streamed success; application/json with an envelope by default. */
  media?: readonly string[];
  /** The body of a success is the bare object, without an envelope. */
  bare?: boolean;
  /** The response holds a secret: its stored copy is sealed with the caller's own credential. */
  secret?: boolean;
  /**
   * Undeclared query parameters are ignored instead of rejected: for probes and scrapers that add
   * their own.
   */
  any_query?: true;
  /**
   * The query parameter `org_id` names the organization as a path does: for browsers' EventSource,
   * which cannot send X-Org-Id.
   */
  org_in_query?: true;
  /** Example request body for the documentation. */
  example?: unknown;
  /**
   * Audit declaration; null for a POST that changes nothing (an export, a comparison). Every route
   * other than GET declares one of the two.
   */
  audit?: AuditDeclaration | null;
  /**
   * Where the request names the resources on which a member can be granted what their role lacks; a
   * grant on any of them suffices.
   */
  resource?: ResourceName | readonly ResourceName[];
  /**
   * A further permission, by role or by a grant on this resource, for a member whom a grant rather
   * than their role admits.
   */
  grant_needs?: { permission: Permission; resource: ResourceName };
  /** Deprecated parts of this route; see deprecation.ts. */
  deprecated?: readonly Deprecated[];
}

/** A context with erased types. */
export type AnyContext = Context<unknown, unknown, unknown, Credential>;

/** A route as mount.ts and openapi/document.ts see it. */
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
  /** Schema of `data`, or of the whole response for bare ones. */
  response: R;
  handler: (
    ctx: Context<z.output<P>, z.output<Q>, z.output<B>, Who>,
  ) => Result<z.input<NoInfer<R>>> | Promise<Result<z.input<NoInfer<R>>>>;
}

const empty = z.object({});
type Empty = typeof empty;

/**
 * Declares a route of an organization: the credential belongs to the organization and has
 * `permission`. A path that names another organization is rejected before the handler runs.
 */
export function defineRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, OrgCredential> & { permission: Permission }): Route {
  const { permission, ...rest } = shapes;
  return erase(rest, permission);
}

/** Declares a route for any person with a valid token, member of an organization or not. */
export function definePersonRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, PersonCredential>): Route {
  return erase(shapes, 'person');
}

/** Declares a route of the operator, who sends the admin token. */
export function defineOperatorRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, OperatorCredential>): Route {
  return erase(shapes, 'operator');
}

/** Declares a route that everybody may call. */
export function definePublicRoute<
  R extends z.ZodType,
  P extends z.ZodType = Empty,
  Q extends z.ZodType = Empty,
  B extends z.ZodType = z.ZodUndefined,
>(shapes: Shapes<P, Q, B, R, AnonymousCredential>): Route {
  return erase(shapes, 'public');
}

/** Returns the path as OpenAPI and the metrics write it: /v1/traces/{trace_id}/tree. */
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
    // mount.ts parses with these schemas and authorizes for this access before it calls the
    // handler, so the erased context has these types.
    handler: async (ctx) => handler(ctx as Context<z.output<P>, z.output<Q>, z.output<B>, Who>),
  };
}

/**
 * Returns the schema of a list parameter: repeated (`tags=a&tags=b`), comma-separated (`tags=a,b`),
 * or both. Empty parts are dropped.
 */
export function listParam<T extends z.ZodType>(item: T): z.ZodPreprocess<z.ZodArray<T>> {
  return z.preprocess((value) => {
    if (value === undefined) return value;
    const parts: unknown[] = Array.isArray(value) ? value : [value];
    return parts.flatMap((part) => (typeof part === 'string' ? part.split(',') : [part])).filter((part) => part !== '');
  }, z.array(item));
}
