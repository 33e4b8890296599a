// The OpenAPI 3.1 document, made from the very declarations and zod schemas that serve and check the requests.
// In: every route. Out: the document as an object; nothing here is written down twice.
import { z } from 'zod';
import { markDeprecated } from './deprecated.ts';
import { API_VERSION, baseMeta } from '../http/envelope.ts';
import { EVENT_CATALOG, TEST_EVENT, testPayload } from '../../schemas/events/catalog.ts';
import { errorBody, type ErrorCode, STATUS_OF } from '../http/errors.ts';
import { type Access, PERMISSIONS } from '../http/permissions.ts';
import { type Route, templateOf } from '../http/route.ts';

/** What the document needs of a route; ingest, which is not served by declaration, gives just this. */
export type RouteDoc = Omit<Route, 'handler'> & {
  /** Knows no Idempotency-Key. */
  keyless?: true;
  /** Meant for pages, which can set no header in a beacon: takes its body as text/plain too, and an API key in the query. */
  pages?: true;
  /** Where errors have a shape and statuses of their own; `only` says which have the usual ones too. */
  other_errors?: { schema: z.ZodType; status_of: (code: ErrorCode) => number; only?: (code: ErrorCode) => boolean };
};
const PROTOBUF = 'application/x-protobuf';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = Record<string, Json>;

const INTRO = `Send telemetry of LLM calls, agents and apps; read it back as traces made of spans.

Every answer carries **X-Request-Id**. A success is \`{data, meta}\`, an error \`{detail, request_id, code}\` with the HTTP status that belongs to the code.
POST endpoints take **Idempotency-Key** (a UUID): for 24 hours the same request gets the first answer again, with \`Idempotency-Replayed: true\`. Where that is too large to be kept (beyond some hundred KiB), what changed something answers 409 and does nothing again; what is streamed is made anew. No answer is dropped within its 24 hours: an organization whose answers fill its share (20,000 answers or 64 MiB) gets 429 with Retry-After for requests with a new key, before anything is done, and can send them without a key.
**X-Service-Api-Version** may pin a minor version (1.7 or 1.7.x).
A query parameter that an endpoint does not take is 422 \`invalid_request\`, naming the nearest that it does.`;

const SECURITY_SCHEMES: JsonObject = {
  orgApiKey: { type: 'apiKey', in: 'header', name: 'X-Org-Api-Key', description: 'API key of an org, with X-Org-Id.' },
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
    description: 'Token of a person, from the identity provider, with X-Org-Id.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'svc_session',
    description: 'The same token as the session cookie of a browser.',
  },
  operator: { type: 'http', scheme: 'bearer', description: 'The operator token (SERVICE_ADMIN_TOKEN).' },
};

/** Codes that any route of an access can answer. */
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
    description: 'Requests (app ingest: events) a minute; absent for an unlimited tenant',
    schema: { type: 'integer' },
  },
  'RateLimit-Remaining': { description: 'How many would be let in now', schema: { type: 'integer' } },
  'RateLimit-Reset': { description: 'Seconds until the bucket is full again', schema: { type: 'integer' } },
};
const RETRY_AFTER: JsonObject = { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } };

/** Headers of an answer of this access; a refusal that passes says when. */
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
  '408, 429, 5xx or no answer within 10 s: tried again for up to 24 hours, after 1 s growing to 60 s, or as long as Retry-After asks. Anything else, redirects included, is the last word';

/** The whole document. */
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

/** What the service sends to webhook endpoints: one entry an event of the catalog. */
function webhooksOf(components: JsonObject): JsonObject {
  const test = {
    fires: 'Asked for by POST …/test: sent to one endpoint, whatever it subscribes to',
    payload: testPayload,
  };
  const parameters = [
    header('X-Service-Event-Id', 'The same for every try: drop what you have seen', { type: 'string' }),
    header('X-Service-Signature', SIGNED, { type: 'string' }),
    header('X-Service-Attempt', 'Tries that have failed before', { type: 'integer', minimum: 0 }),
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

/** Who may call, for a person to read; the same for programs is x-access. */
function needsOf(access: Access): string {
  if (access === 'operator' || access === 'public') return '';
  if (access === 'person') return 'Takes the token of any person.';
  const { role, scope } = PERMISSIONS[access];
  const key = scope === null ? 'no API key has it' : `an API key needs the scope \`${scope}\``;
  return `Needs the permission \`${access}\`: the role ${role}${role === 'owner' ? '' : ' or above'}; ${key}.`;
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
    inHeader.push(header('X-Org-Id', 'The org of the credential; another one is refused', { type: 'string' }));
  if (takesKey(route))
    inHeader.push(
      header('Idempotency-Key', 'Makes a repeat harmless for 24 hours', { type: 'string', format: 'uuid' }),
    );
  return [...inPath, ...inQuery, ...inHeader];
}

/** Codes of a repeat: conflict where the first answer was too large to be kept, and what it changed is not done again. */
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
  // A code that has another shape for some reason only has the usual one for all others.
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

/** JSON Schema of a zod schema; what has an id becomes a component that is referred to. */
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

/** @throws Error where another shape has this id: all but one of their routes would show the wrong one */
function addComponent(components: JsonObject, id: string, shape: JsonObject): void {
  const known = components[id];
  if (known !== undefined && saidBy(known) !== saidBy(shape)) throw new Error(`two different shapes have the id ${id}`);
  components[id] = shape;
}

/** What a shape says, but for what one and the same schema says differently: taken or answered, marked as deprecated or not yet. */
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
