// Deprecations are announced as the RFCs say, last for a year, and name something that exists.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Deprecated, deprecationHeaders } from '../../../api/http/deprecation.ts';
import { defineRoute } from '../../../api/http/route.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';

const shared = z.object({ old_name: z.string(), new_name: z.string() }).meta({ id: 'TestThing' });
const at = (part: Deprecated['part'], field: string, more: Partial<Deprecated> = {}): Deprecated => ({
  part,
  field,
  since: '2026-01-31',
  sunset: '2027-01-31',
  instead: 'new_name',
  ...more,
});
const routeWith = (...deprecated: Deprecated[]) =>
  defineRoute({
    method: 'post',
    path: '/v1/things',
    operation_id: 'makeThing',
    summary: 'A thing',
    tag: 'Things',
    permission: 'traces:read',
    audit: null,
    query: z.object({ page_no: z.string().optional() }),
    body: z.object({
      label: z.string().optional(),
      nested: z.object({ deep: z.array(z.object({ leaf: z.string() })) }).optional(),
    }),
    response: z.array(shared),
    deprecated,
    handler: () => ({ data: [] }),
  });
interface Marked {
  deprecated?: boolean;
  'x-sunset'?: string;
}
interface Operation extends Marked {
  description: string;
  parameters: (Marked & { name: string })[];
  requestBody: { content: Record<string, { schema: { properties: Record<string, Marked> } }> };
}
const documented = (...deprecated: Deprecated[]) => {
  const document = openApiDocument([routeWith(...deprecated)]);
  return {
    document,
    operation: (document['paths'] as unknown as Record<string, { post: Operation }>)['/v1/things']?.post,
  };
};
const MARK = { deprecated: true, 'x-sunset': '2027-01-31' };

describe('headers', () => {
  test('a deprecated field has Deprecation as a structured date, Link to the documentation, and no Sunset, as the resource stays', () => {
    const headers = deprecationHeaders(
      routeWith(at('query', 'page_no'), at('body', 'label', { since: '2026-01-01T00:00:00.900Z' })),
    );
    expect(headers).toEqual([
      ['Deprecation', '@1767225600'],
      ['Link', '</docs>; rel="deprecation"; type="text/html"'],
    ]);
  });

  test('a deprecated route has Sunset as an HTTP date', () => {
    expect(Object.fromEntries(deprecationHeaders(routeWith(at('route', ''))))['Sunset']).toBe(
      'Sun, 31 Jan 2027 00:00:00 GMT',
    );
  });

  test('a current route has none of these headers', () => {
    expect(deprecationHeaders(routeWith())).toEqual([]);
    expect(deprecationHeaders({})).toEqual([]);
  });
});

describe('the document', () => {
  test('the document marks parameters, fields and routes with their date', () => {
    const { document, operation } = documented(
      at('query', 'page_no'),
      at('body', 'label'),
      at('body', 'nested.deep.leaf'),
      at('response', 'old_name'),
      at('route', ''),
    );
    expect(operation).toMatchObject(MARK);
    expect(operation?.parameters.find(({ name }) => name === 'page_no')).toMatchObject(MARK);
    expect(operation?.requestBody.content['application/json']?.schema.properties['label']).toMatchObject(MARK);
    expect(JSON.stringify(operation?.requestBody)).toContain(
      '"leaf":{"type":"string","deprecated":true,"x-sunset":"2027-01-31"}',
    );
    const things = (
      document['components'] as unknown as { schemas: { TestThing: { properties: Record<string, Marked> } } }
    ).schemas.TestThing;
    expect(things.properties['old_name']).toMatchObject(MARK);
    expect(things.properties['new_name']).not.toHaveProperty('deprecated');
    expect(operation?.description).toContain(
      'The query parameter `page_no` will be removed on 2027-01-31. Use new_name.',
    );
  });

  test.each([
    ['a field that is not there', at('body', 'nothing')],
    ['a nested one that is not there', at('body', 'label.deeper')],
    ['a name that every object has', at('response', 'constructor')],
    ['a parameter of another place', at('query', 'label')],
    ['less than twelve months', at('body', 'label', { sunset: '2027-01-30' })],
    ['no date', at('body', 'label', { since: 'soon' })],
    ['a field without a name', at('body', '')],
    ['a route with one', at('route', 'label')],
  ])('the document rejects a declaration with %s', (_, deprecated) => {
    expect(() => documented(deprecated)).toThrow(/^makeThing: /);
  });
});
