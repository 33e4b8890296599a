// The document that is generated: complete, closed, and nothing in it that a route does not declare.
import { expect, test } from 'vitest';
import { z } from 'zod';
import { pageMeta } from '../../../api/http/pagination.ts';
import { defineRoute, listParam } from '../../../api/http/route.ts';
import { INGEST_DOCS } from '../../../api/ingest/docs.ts';
import { type Json, openApiDocument } from '../../../api/openapi.ts';
import { operatorRoutes } from '../../../api/orgs/operator_routes.ts';
import { orgRoutes } from '../../../api/orgs/routes.ts';
import type { OrgsDeps } from '../../../api/orgs/orgs.ts';
import { docsPage } from '../../../api/system/docs_page.ts';
import { checkEvent, type IngestFormat, splitBody } from '../../../schemas/formats/formats.ts';

/** Routes are only described here; no handler runs. */
const NO_DEPS = {} as OrgsDeps;
const routes = [...INGEST_DOCS, ...orgRoutes(NO_DEPS), ...operatorRoutes(NO_DEPS)];
const document = openApiDocument(routes);

function refsIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' && typeof inner === 'string' ? [inner] : refsIn(inner)));
}

test('every reference leads somewhere', () => {
  const refs = new Set(refsIn(document));
  expect(refs.size).toBeGreaterThan(0);
  for (const ref of refs) {
    const found = ref
      .slice(2)
      .split('/')
      .reduce<Json | undefined>((at, key) => (typeof at === 'object' && at !== null && !Array.isArray(at) ? at[key] : undefined), document);
    expect([ref, typeof found]).toEqual([ref, 'object']);
  }
});

test('every declared route is there once, under its own operation id', () => {
  const paths = document['paths'] as Record<string, Record<string, { operationId: string }>>;
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
  expect(ids.toSorted()).toEqual(routes.map(({ operation_id }) => operation_id).sort());
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(INGEST_DOCS.map((doc) => [doc.path.split('/').at(-1) as IngestFormat, doc.example] as const))(
  'the example of %s is one that ingest takes',
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
  expect(text).toContain('"name":"tags","in":"query","required":false,"schema":{"type":"array","items":{"type":"string"}}');
  expect(text).toContain('"name":"since","in":"query","required":true,"description":"From when"');
  expect(text).toContain('"404":{"description":"trace_not_found"');
  for (const field of ['total', 'page', 'per_page', 'has_more', 'api_version', 'request_id', 'timestamp'])
    expect(text).toContain(`"${field}":`);
});

test('the page shows every path, fetches nothing and escapes what it shows', () => {
  const page = docsPage({ ...document, info: { title: '<script>', version: '1', description: 'a & b' } });
  for (const path of Object.keys(document['paths'] as object)) expect(page).toContain(`<code>${path}</code>`);
  expect(page).not.toMatch(/<script|src=|@import|url\(/);
  expect(page).toContain('&lt;script&gt;');
});
