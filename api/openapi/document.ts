// Builds the OpenAPI 3.1 document from the declarations and zod schemas that serve and validate the
// requests. Takes every route; returns the document as an object. No fact stands in a second place.
import { z } from 'zod';
import { markDeprecated } from './deprecated.ts';
import { API_VERSION, baseMeta } from '../http/envelope.ts';
import { EVENT_CATALOG, TEST_EVENT, testPayload } from '../../schemas/events/catalog.ts';
import { errorBody, type ErrorCode, STATUS_OF } from '../http/errors.ts';
import { type Access, PERMISSIONS } from '../http/permissions.ts';
import { type Route, templateOf } from '../http/route.ts';

/**
 * Properties of a route that appear in the document. Ingest, whose routes are not served from a
 * declaration, provides exactly these.
 */
export type RouteDoc = Omit<Route, 'handler'> & {
  /** True: the route takes no Idempotency-Key. */
  keyless?: true;
  /**
   * True for routes that web pages call with beacons, which cannot set headers: the body may be
   * text/plain, and the API key may be in the query.
   */
  pages?: true;
  /**
   * Shape and statuses of errors that differ from the usual ones. `only` returns true for a code
   * that is answered in the usual shape too.
   */
  other_errors?: { schema: z.ZodType; status_of: (code: ErrorCode) => number; only?: (code: ErrorCode) => boolean };
};
const PROTOBUF = 'application/x-protobuf';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = Record<string, Json>;

const INTRO = `
Send telemetry of LLM calls, agents and apps, and read it back as traces made of spans.

Every response carries **X-Request-Id**. A success is \`{data, meta}\`; an error is \`{detail, request_id, code}\` with the HTTP status of its code.
POST endpoints take an **Idempotency-Key** (a UUID): for 24 hours, the same request gets the first response again, with \`Idempotency-Replayed: true\`. When that response was too large to be stored (more than some hundred KiB), a repeat of a request that changed something gets a 409 and changes nothing, and a streamed response is produced again. No stored response is dropped within its 24 hours: once an organization's responses fill its share (20,000 responses or 64 MiB), requests with a new key get a 429 with Retry-After before anything is done; they can be sent without a key.
**X-Service-Api-Version** may pin a minor version (1.7 or 1.7.x).
A query parameter that an endpoint does not know gets a 422 \`invalid_request\`, which names the most similar parameter of the endpoint.
Coding agents read the same data over the Model Context Protocol: **POST /mcp** takes the same credentials, and each tool needs the permissions of the endpoints that it calls (see the guide MCP).`;

const SECURITY_SCHEMES: JsonObject = {
  orgApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Org-Api-Key',
    description: 'API key of an organization, with X-Org-Id.',
  },
  queryKey: { type: 'apiKey', in: 'query', name: 'api_key', description: 'API key whose only scope is ingest:write.' },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'sk_svc_…',
    description: 'The same API key as a bearer token.',
  },
  token: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token that the identity provider issued to a person, with X-Org-Id.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'svc_session',
    description: 'The same token, as the session cookie of a browser.',
  },
  operator: { type: 'http', scheme: 'bearer', description: 'The operator token (SERVICE_ADMIN_TOKEN).' },
};

/** Error codes that every route of an access can return. */
const COMMON: Record<'org' | 'person' | 'operator' | 'public', readonly ErrorCode[]> = {
  person: [
    'unauthenticated',
    'forbidden',
    'rate_limited',
    'invalid_request',
    'unsupported_api_version',
    'internal_error',
    'upstream_unavailable',
  ],
  org: [
    'unauthenticated',
    'cross_org_access',
    'forbidden',
    'rate_limited',
    'invalid_request',
    'unsupported_api_version',
    'internal_error',
    'upstream_unavailable',
  ],
  operator: [
    'unauthenticated',
    'forbidden',
    'invalid_request',
    'unsupported_api_version',
    'internal_error',
    'upstream_unavailable',
  ],
  public: ['internal_error'],
};
const RATE_HEADERS: JsonObject = {
  'RateLimit-Limit': {
    description: 'Requests per minute (app ingest: events per minute); absent for an unlimited organization',
    schema: { type: 'integer' },
  },
  'RateLimit-Remaining': { description: 'Number of requests that would be admitted now', schema: { type: 'integer' } },
  'RateLimit-Reset': { description: 'Seconds until the limit is fully available again', schema: { type: 'integer' } },
};
const RETRY_AFTER: JsonObject = { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } };

/**
 * Returns the response headers of an access and a status. A rejection that ends by itself has
 * Retry-After.
 */
function headersOf(access: Access, status?: number): JsonObject {
  return {
    'X-Request-Id': { schema: { type: 'string' } },
    ...(access === 'public' || access === 'operator' ? {} : RATE_HEADERS),
    ...(status === 429 || status === 402 ? RETRY_AFTER : {}),
  };
}

const OF_BODY: readonly ErrorCode[] = ['unsupported_media_type', 'payload_too_large'];

const SIGNED =
  't=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<raw body>" with the secret>; one v1 for each live secret. Compare in constant time, and refuse a t that is more than 300 seconds off';
const RETRIED =
  '408, 429, 5xx or no response within 10 s: retried for up to 24 hours, after 1 s growing to 60 s, or after the time that Retry-After asks for. Any other response, including a redirect, is final';

/** Returns the whole document. */
export function openApiDocument(routes: readonly RouteDoc[]): JsonObject {
  const components: JsonObject = {};
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    const path = templateOf(route.path);
    paths[path] = { ...paths[path], [route.method]: operationOf(route, components) };
  }
  schemaOf(errorBody, 'output', components);
  const webhooks = webhooksOf(components);
  const tags = [...new Set(routes.map((route) => route.tag))].map((name) => ({ name }));
  return {
    openapi: '3.1.0',
    info: { title: 'Millrace: LLM observability', version: API_VERSION, description: INTRO },
    tags,
    paths,
    webhooks,
    components: { schemas: components, securitySchemes: SECURITY_SCHEMES },
  };
}

/** Returns the webhooks section: one entry for each event of the catalog. */
function webhooksOf(components: JsonObject): JsonObject {
  const test = {
    fires: 'Sent on POST …/test to one endpoint, whatever events it subscribes to',
    payload: testPayload,
  };
  const parameters = [
    header('X-Service-Event-Id', 'The same for every attempt: ignore an id that you have seen', { type: 'string' }),
    header('X-Service-Signature', SIGNED, { type: 'string' }),
    header('X-Service-Attempt', 'Number of earlier attempts, all of which failed', { type: 'integer', minimum: 0 }),
  ].map((parameter) => ({ ...parameter, required: true }));
  return Object.fromEntries(
    Object.entries({ ...EVENT_CATALOG, [TEST_EVENT]: test }).map(([name, { fires, payload }]) => {
      const content = { 'application/json': { schema: schemaOf(payload, 'output', components) } };
      const responses = { '2XX': { description: 'Taken' }, default: { description: RETRIED } };
      return [
        name,
        {
          post: { summary: fires, tags: ['Webhooks'], parameters, requestBody: { required: true, content }, responses },
        },
      ];
    }),
  );
}

function operationOf(route: RouteDoc, components: JsonObject): JsonObject {
  const operation: JsonObject = {
    operationId: route.operation_id,
    summary: route.summary,
    tags: [route.tag],
    security: securityOf(route),
    'x-access': route.access,
    ...(route.audit === undefined ? {} : { 'x-audit': route.audit === null ? null : route.audit.action }),
    parameters: parametersOf(route, components),
    responses: responsesOf(route, components),
  };
  const description = [route.description ?? '', needsOf(route.access)].filter((part) => part !== '').join('\n\n');
  if (description !== '') operation['description'] = description;
  if (route.body !== null) {
    const media: JsonObject = { schema: schemaOf(route.body, 'input', components) };
    if (route.example !== undefined) media['example'] = route.example as Json;
    const binary: JsonObject = route.media?.includes(PROTOBUF) === true ? { [PROTOBUF]: {} } : {};
    operation['requestBody'] = {
      required: true,
      content: { 'application/json': media, ...(route.pages === true ? { 'text/plain': media } : {}), ...binary },
    };
  }
  if (route.deprecated !== undefined) markDeprecated(operation, route.deprecated, components);
  return operation;
}

function securityOf({ access, pages }: RouteDoc): Json {
  if (access === 'public') return [];
  if (access === 'operator') return [{ operator: [] }];
  const persons: Json[] = [{ token: [] }, { session: [] }];
  return access === 'person' || PERMISSIONS[access].scope === null
    ? persons
    : [{ orgApiKey: [] }, { bearer: [] }, ...(pages === true ? [{ queryKey: [] }] : []), ...persons];
}

/** Returns who may call a route, for people; x-access says the same for programs. */
function needsOf(access: Access): string {
  if (access === 'operator' || access === 'public') return '';
  if (access === 'person') return 'Accepts the token of any person.';
  const { role, scope } = PERMISSIONS[access];
  const key = scope === null ? 'no API key has it' : `an API key requires the scope \`${scope}\``;
  return `Requires the permission \`${access}\`: the role ${role}${role === 'owner' ? '' : ' or above'}; ${key}.`;
}

function parametersOf(route: RouteDoc, components: JsonObject): Json[] {
  const inPath = fieldsOf(route.params, components).map(({ name, schema }) => ({
    name,
    in: 'path',
    required: true,
    schema,
  }));
  const inQuery = fieldsOf(route.query, components).map(({ name, schema, required }) => {
    const { description, ...rest } = schema;
    return { name, in: 'query', required, ...(description === undefined ? {} : { description }), schema: rest };
  });
  const inHeader: Json[] = [];
  if (route.access !== 'public' && route.access !== 'operator' && route.access !== 'person')
    inHeader.push(header('X-Org-Id', 'Organization of the credential; another one is rejected', { type: 'string' }));
  if (takesKey(route))
    inHeader.push(
      header('Idempotency-Key', 'Makes repeating the request safe for 24 hours', { type: 'string', format: 'uuid' }),
    );
  return [...inPath, ...inQuery, ...inHeader];
}

/**
 * Returns the error codes of a repeated request: conflict, when the first response was too large to
 * be stored and its change is not made again.
 */
function keyErrorsOf(route: RouteDoc): readonly ErrorCode[] {
  if (!takesKey(route)) return [];
  if (route.media !== undefined) return ['idempotency_key_reused'];
  return ['idempotency_in_progress', 'idempotency_key_reused', ...(route.audit == null ? [] : (['conflict'] as const))];
}

const takesKey = ({ method, keyless }: RouteDoc): boolean => method === 'post' && keyless !== true;

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: 'header', required: false, description, schema };
}

interface Field {
  name: string;
  schema: JsonObject;
  required: boolean;
}

function fieldsOf(schema: z.ZodType, components: JsonObject): Field[] {
  const object = schemaOf(schema, 'input', components);
  const properties = (object['properties'] ?? {}) as Record<string, JsonObject>;
  const required = (object['required'] ?? []) as string[];
  return Object.entries(properties).map(([name, property]) => ({
    name,
    schema: property,
    required: required.includes(name),
  }));
}

function responsesOf(route: RouteDoc, components: JsonObject): JsonObject {
  const success = successOf(route, components);
  const responses: JsonObject = { [String(route.status ?? 200)]: success };
  for (const [status, description] of Object.entries(route.also ?? {})) responses[status] = { ...success, description };
  const kind =
    route.access === 'person' || route.access === 'operator' || route.access === 'public' ? route.access : 'org';
  const ofQuery: readonly ErrorCode[] = route.any_query === true ? [] : ['invalid_request'];
  const codes = new Set([
    ...(route.errors ?? []),
    ...COMMON[kind],
    ...ofQuery,
    ...(route.body === null ? [] : OF_BODY),
    ...keyErrorsOf(route),
  ]);
  const { other_errors: other } = route;
  const otherSchema = other === undefined ? null : schemaOf(other.schema, 'output', components);
  // A code that has a different shape for some reasons has the usual shape for all others.
  const errors = [...codes]
    .sort()
    .flatMap((code) => [
      ...(other !== undefined && (other.only?.(code) ?? true)
        ? [{ code, status: other.status_of(code), isOther: true }]
        : []),
      ...(other === undefined || other.only !== undefined ? [{ code, status: STATUS_OF[code], isOther: false }] : []),
    ]);
  const byStatus = Map.groupBy(errors, ({ status }) => status);
  for (const [status, of] of [...byStatus].sort(([a], [b]) => a - b)) {
    const isOther = otherSchema !== null && of.every((one) => one.isOther);
    const error = isOther ? otherSchema : { $ref: '#/components/schemas/Error' };
    responses[String(status)] = {
      description: of.map(({ code }) => code).join(', '),
      headers: headersOf(route.access, status),
      content: {
        'application/json': { schema: error },
        ...(isOther && route.media?.includes(PROTOBUF) === true ? { [PROTOBUF]: {} } : {}),
      },
    };
  }
  return responses;
}

function successOf(route: RouteDoc, components: JsonObject): JsonObject {
  const headers = headersOf(route.access);
  const data = schemaOf(route.response, 'output', components);
  if (route.media !== undefined) {
    return {
      description: 'Success',
      headers,
      content: Object.fromEntries(route.media.map((type) => [type, { schema: data }])),
    };
  }
  if (route.bare === true)
    return { description: 'Success', headers, content: { 'application/json': { schema: data } } };
  const meta = schemaOf(route.meta === undefined ? baseMeta : baseMeta.extend(route.meta.shape), 'output', components);
  const schema: JsonObject = { type: 'object', required: ['data', 'meta'], properties: { data, meta } };
  return { description: 'Success', headers, content: { 'application/json': { schema } } };
}

/**
 * Returns the JSON Schema of a zod schema. A schema with an id becomes a component that is
 * referenced.
 */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', components: JsonObject): JsonObject {
  const json = rewriteRefs(
    z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as JsonObject,
  ) as JsonObject;
  const definitions = (json['$defs'] ?? {}) as Record<string, JsonObject>;
  for (const [name, definition] of Object.entries(definitions))
    addComponent(components, name, without(definition, 'id'));
  const own = without(json, '$schema', '$defs', 'id');
  const id = json['id'];
  if (typeof id !== 'string') return own;
  addComponent(components, id, own);
  return { $ref: `#/components/schemas/${id}` };
}

/**
 * Adds a component. @throws Error when another shape has this id, because all but one of their
 * routes would show the wrong shape
 */
function addComponent(components: JsonObject, id: string, shape: JsonObject): void {
  const known = components[id];
  if (known !== undefined && saidBy(known) !== saidBy(shape)) throw new Error(`two different shapes have the id ${id}`);
  components[id] = shape;
}

/**
 * Returns what distinguishes a shape, without what one schema says differently as input and as
 * output, or before and after it is marked as deprecated.
 */
function saidBy(shape: Json): string {
  return JSON.stringify(shape, (key, value: unknown) => {
    const isItsOwn = !(key === 'additionalProperties' && value === false) && key !== 'deprecated' && key !== 'x-sunset';
    return isItsOwn ? value : undefined;
  });
}

function without(schema: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));
}

function rewriteRefs(value: Json): Json {
  if (Array.isArray(value)) return value.map(rewriteRefs);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string'
        ? inner.replace('#/$defs/', '#/components/schemas/')
        : rewriteRefs(inner),
    ]),
  );
}
