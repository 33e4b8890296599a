// The generated document is complete and closed, and contains nothing that a route does not
// declare.
import { expect, test } from 'vitest';
import { z } from 'zod';
import { pageMeta } from '../../../api/http/pagination.ts';
import { defineRoute, listParam } from '../../../api/http/route.ts';
import { INGEST_DOCS } from '../../../api/intake/ingest/docs.ts';
import { type Json, openApiDocument } from '../../../api/openapi/document.ts';
import { operatorRoutes } from '../../../api/control/orgs/operator_routes.ts';
import { orgRoutes } from '../../../api/control/orgs/routes.ts';
import type { OrgsDeps } from '../../../api/control/orgs/orgs.ts';
import { OTLP_DOCS } from '../../../api/intake/otlp/docs.ts';
import { type SessionDeps, sessionRoutes } from '../../../api/control/sign_in/routes.ts';
import { sessionListRoutes } from '../../../api/telemetry/sessions/routes.ts';
import type { SessionsDeps } from '../../../api/telemetry/sessions/sessions.ts';
import { docsPage } from '../../../api/openapi/docs_page.ts';
import { traceRoutes } from '../../../api/telemetry/traces/routes.ts';
import { checkEvent, type IngestFormat, splitBody } from '../../../schemas/formats/formats.ts';

/** Routes are only described here; no handler runs. */
const NO_DEPS = {} as OrgsDeps;
const routes = [...INGEST_DOCS, ...orgRoutes(NO_DEPS), ...operatorRoutes(NO_DEPS)];
const document = openApiDocument(routes);

function refsIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : refsIn(inner),
  );
}

test('every reference resolves', () => {
  const refs = new Set(refsIn(document));
  expect(refs.size).toBeGreaterThan(0);
  for (const ref of refs) {
    const found = ref
      .slice(2)
      .split('/')
      .reduce<Json | undefined>(
        (at, key) => (typeof at === 'object' && at !== null && !Array.isArray(at) ? at[key] : undefined),
        document,
      );
    expect([ref, typeof found]).toEqual([ref, 'object']);
  }
});

test('every declared route is documented once, under its own operation id', () => {
  const paths = document['paths'] as Record<string, Record<string, { operationId: string }>>;
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
  expect(ids.toSorted()).toEqual(routes.map(({ operation_id }) => operation_id).sort());
  expect(new Set(ids).size).toBe(ids.length);
});

test('an answer with several statuses is documented under each', () => {
  const route = defineRoute({
    method: 'post',
    path: '/v1/things',
    operation_id: 'makeThing',
    summary: 'Make a thing, or find that it is made',
    tag: 'Things',
    permission: 'traces:read',
    status: 201,
    also: { 200: 'It was made before' },
    audit: null,
    response: z.object({ a: z.int() }),
    handler: () => ({ data: { a: 1 } }),
  });
  const paths = openApiDocument([route])['paths'] as Record<
    string,
    Record<string, { responses: Record<string, Record<string, Json>> }>
  >;
  const responses = paths['/v1/things']?.['post']?.responses;
  expect(responses?.['200']).toEqual({ ...responses?.['201'], description: 'It was made before' });
});

test.each(INGEST_DOCS.map((doc) => [doc.path.split('/').at(-1) as IngestFormat, doc.example] as const))(
  'ingest accepts the example of %s',
  (format, example) => {
    const split = splitBody(format, example);
    expect(split.ok && split.events.map((event) => checkEvent(format, event).ok)).toEqual([true]);
  },
);

test('parameters, page meta and errors come from the declaration', () => {
  const route = defineRoute({
    method: 'get',
    path: '/v1/things/:thing_id',
    operation_id: 'listThings',
    summary: 'Things',
    tag: 'Things',
    permission: 'traces:read',
    params: z.object({ thing_id: z.string() }),
    query: z.object({ tags: listParam(z.string()).optional(), since: z.iso.datetime().describe('From when') }),
    response: z.array(z.object({ a: z.int() })),
    meta: pageMeta,
    errors: ['trace_not_found'],
    handler: () => ({ data: [] }),
  });
  const text = JSON.stringify(openApiDocument([route]));
  expect(text).toContain('"name":"thing_id","in":"path","required":true');
  expect(text).toContain(
    '"name":"tags","in":"query","required":false,"schema":{"type":"array","items":{"type":"string"}}',
  );
  expect(text).toContain('"name":"since","in":"query","required":true,"description":"From when"');
  expect(text).toContain('"404":{"description":"trace_not_found"');
  for (const field of ['total', 'page', 'per_page', 'has_more', 'api_version', 'request_id', 'timestamp'])
    expect(text).toContain(`"${field}":`);
});

test('one id stands for one shape, as input or output; two shapes of one id are rejected', () => {
  const thing = z.object({ a: z.int() }).meta({ id: 'UnitThing' });
  const route = (response: z.ZodType) =>
    defineRoute({
      method: 'post',
      path: '/v1/things',
      operation_id: 'makeThing',
      summary: 'A thing',
      tag: 'Things',
      permission: 'traces:read',
      audit: { action: 'thing.make', target: 'trace' },
      body: thing,
      response,
      handler: () => ({ data: null }),
    });
  expect(JSON.stringify(openApiDocument([route(thing)]))).toContain('"UnitThing":{"type":"object"');
  // The same holds deeper down.
  const namesake = () => z.object({ b: z.int() }).meta({ id: 'UnitThing' });
  for (const other of [namesake(), z.object({ in: z.array(namesake()) })])
    expect(() => openApiDocument([route(other)])).toThrow('two different shapes have the id UnitThing');
});

test('the shape of a login differs from that of a session of traces', () => {
  const { components } = openApiDocument([
    ...sessionRoutes({} as SessionDeps),
    ...sessionListRoutes({} as SessionsDeps),
  ]) as unknown as {
    components: { schemas: Record<string, { properties: object }> };
  };
  expect(Object.keys(components.schemas['Session']?.properties ?? {})).toContain('session_id');
  expect(Object.keys(components.schemas['LoginSession']?.properties ?? {})).toContain('expires_at');
});

test('a route documents what its Idempotency-Key can answer', () => {
  const paths = openApiDocument([...routes, ...traceRoutes({} as never), ...OTLP_DOCS])['paths'] as unknown as Record<
    string,
    Record<string, { parameters: { name: string }[]; responses: Record<string, { description: string }> }>
  >;
  const of = (path: string) => {
    const { parameters = [], responses = {} } = paths[path]?.['post'] ?? {};
    return [
      parameters.some(({ name }) => name === 'Idempotency-Key'),
      responses['409']?.description,
      responses['422']?.description,
    ];
  };
  expect(of('/v1/traces/{trace_id}/replay')).toEqual([
    true,
    'conflict, idempotency_in_progress',
    expect.stringContaining('_reused'),
  ]);
  expect(of('/v1/traces/compare')).toEqual([true, 'idempotency_in_progress', expect.stringContaining('_reused')]);
  expect(of('/v1/traces/{trace_id}/export')).toEqual([true, undefined, expect.stringContaining('_reused')]);
  // A route without an Idempotency-Key whose error has two shapes.
  expect(of('/v1/traces')).toEqual([false, undefined, 'invalid_request, unsupported_api_version']);
  expect(paths['/v1/traces']?.['post']?.responses['400']?.description).toBe('invalid_request');
});

test('the page shows every path, fetches nothing and escapes what it shows', () => {
  const page = docsPage({ ...document, info: { title: '<script>', version: '1', description: 'a & b' } }, '');
  for (const path of Object.keys(document['paths'] as object)) expect(page).toContain(`<code>${path}</code>`);
  expect(page.match(/<script/g)).toHaveLength(1);
  expect(page).not.toMatch(/src=|@import|url\(/);
  expect(page).toContain('&lt;script&gt;');
});

test('the page lists the fields of a request body, with variants and nested objects folded', () => {
  const variant = (kind: string) => ({
    type: 'object',
    required: ['threshold'],
    properties: {
      kind: { const: kind },
      threshold: { type: 'object', properties: { pass: { type: 'number' } } },
    },
  });
  const schema = { anyOf: [variant('deterministic'), variant('llm')] };
  const post = { operationId: 'create', tags: ['A'], requestBody: { content: { 'application/json': { schema } } } };
  const page = docsPage({ tags: [{ name: 'A' }], paths: { '/a': { post } } }, '');
  expect(page).toContain('<summary>With kind &quot;deterministic&quot;</summary>');
  expect(page).toContain('<summary>With kind &quot;llm&quot;</summary>');
  expect(page).toMatch(/<code>threshold<\/code> <i>object<\/i> <b>required<\/b>/);
  expect(page).toMatch(/<summary>Fields<\/summary><ul class="fields"><li><code>pass<\/code>/);
});

test('the navigation of the page links every operation by its summary', () => {
  const page = docsPage(document, '');
  const nav = page.slice(0, page.indexOf('</nav>'));
  for (const methods of Object.values(document['paths'] as Record<string, Record<string, { operationId: string }>>))
    for (const { operationId } of Object.values(methods)) expect(nav).toContain(`<a href="#${operationId}"`);
});
