// Small pure parts of the API's edge: scopes, versions, paging, list parameters, content types,
// ingest paths, bounds in flight.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkJsonType, parseJson } from '../../../api/http/body.ts';
import { idempotencyKey } from '../../../api/http/idempotency.ts';
import { decodeCursor, encodeCursor, limitParam, pageMetaOf } from '../../../api/http/pagination.ts';
import { beyondKey, beyondRole, keyMay, type Permission, PERMISSIONS } from '../../../api/http/permissions.ts';
import { SCOPES } from '../../../schemas/records/api_key.ts';
import { listParam, templateOf } from '../../../api/http/route.ts';
import { checkPinnedVersion } from '../../../api/http/version.ts';
import { readAck } from '../../../api/intake/ingest/ack_inbox.ts';
import { ingestPathOf } from '../../../api/intake/ingest/handler.ts';
import { joinExpositions } from '../../../ops/platform/metrics_text.ts';

test("a key may do what its scopes say, each by itself or all by the star, but never what is an owner's", () => {
  for (const permission of Object.keys(PERMISSIONS) as Permission[]) {
    const { scope } = PERMISSIONS[permission];
    expect(keyMay(new Set(['*']), permission)).toBe(scope !== null);
    expect(keyMay(new Set(SCOPES.filter((other) => other !== scope && other !== '*')), permission)).toBe(false);
    if (scope !== null) expect(keyMay(new Set([scope]), permission)).toBe(true);
  }
});

test('the creator of a key grants at most their own permissions', () => {
  expect(beyondKey(new Set(['org:write']), ['org:write', '*', 'jobs:read'])).toEqual(['*', 'jobs:read']);
  expect(beyondRole('admin', [...SCOPES])).toEqual([]);
  expect(beyondRole('member', ['traces:read', 'budgets:write', 'agents:write', '*'])).toEqual([
    'budgets:write',
    'agents:write',
    '*',
  ]);
  expect(beyondRole('viewer', ['agents:read', 'traces:read'])).toEqual(['traces:read']);
});

test.each([['1.7'], ['1.7.0'], ['1.7.x'], ['1.0'], [' 1.7 '], [undefined]])('version %s is accepted', (version) => {
  expect(() => {
    checkPinnedVersion(version);
  }).not.toThrow();
});

test.each([['1.8'], ['2.0'], ['0.7'], ['1'], [''], ['1.7.x.x'], ['1.7, 1.7'], [['1.7', '2.0']]])(
  'version %s is rejected',
  (version) => {
    expect(() => {
      checkPinnedVersion(version);
    }).toThrow(expect.objectContaining({ code: 'unsupported_api_version' }) as Error);
  },
);

describe('paging', () => {
  test.each([
    ['1', 1],
    ['200', 200],
    [undefined, 50],
  ])('limit %s is %s', (given, expected) => {
    expect(limitParam.parse(given)).toBe(expected);
  });

  test.each([['0'], ['201'], ['-1'], ['1.5'], ['ten'], [''], [['1', '2']]])('limit %s is rejected', (given) => {
    expect(limitParam.safeParse(given).success).toBe(false);
  });

  test('page numbers follow the offset', () => {
    expect(pageMetaOf(101, 50, 0)).toEqual({ total: 101, page: 1, per_page: 50, has_more: true });
    expect(pageMetaOf(150, 50, 99)).toEqual({ total: 150, page: 2, per_page: 50, has_more: true });
    expect(pageMetaOf(100, 50, 50)).toEqual({ total: 100, page: 2, per_page: 50, has_more: false });
  });

  test('a cursor is decoded as it was encoded, and nothing else is accepted as one', () => {
    const position = z.tuple([z.int(), z.string()]);
    expect(decodeCursor(encodeCursor([5, 'é']), position)).toEqual([5, 'é']);
    for (const forged of ['', 'x', '%%%', encodeCursor({ a: 1 }), encodeCursor([5]), 'W10']) {
      expect(() => decodeCursor(forged, position)).toThrow(
        expect.objectContaining({ code: 'invalid_request' }) as Error,
      );
    }
  });
});

test('a list parameter may be repeated, comma-separated or both', () => {
  const query = z.object({ tags: listParam(z.string()).optional() });
  const tags = (given: unknown) => query.parse({ tags: given }).tags;
  expect(tags('a')).toEqual(['a']);
  expect(tags('a,b')).toEqual(['a', 'b']);
  expect(tags(['a', 'b,c'])).toEqual(['a', 'b', 'c']);
  expect(tags(',a,')).toEqual(['a']);
  expect(tags(undefined)).toBeUndefined();
});

test('paths become templates', () => {
  expect(templateOf('/v1/traces/:trace_id/tree')).toBe('/v1/traces/{trace_id}/tree');
});

test.each([
  ['/orgs/o/ingest/custom', { org_id: 'o', format: 'custom' }],
  ['/orgs/o%20x/ingest/app?a=/b', { org_id: 'o x', format: 'app' }],
  ['/orgs/o/ingest/a/b', { org_id: 'o', format: 'a/b' }],
  ['/orgs/o/ingest/custom/', { org_id: 'o', format: 'custom' }],
  ['/orgs/o/ingest', null],
  ['/orgs/o/ingest/', null],
  ['/orgs/%zz/ingest/custom', null],
  ['/v1/orgs/o/ingest/custom', null],
])('%s is recognised as an ingest path', (url, expected) => {
  expect(ingestPathOf(url)).toEqual(expected);
});

describe('content types', () => {
  test.each([
    [undefined],
    [''],
    ['application/json'],
    ['Application/JSON; charset=UTF-8'],
    ['application/json;charset="utf-8"'],
    ['application/cloudevents+json'],
  ])('the content type %s is JSON', (type) => {
    expect(() => {
      checkJsonType(type);
    }).not.toThrow();
  });

  test.each([
    ['text/plain'],
    ['application/json; charset=latin1'],
    ['application/x-www-form-urlencoded'],
    ['multipart/form-data'],
    ['application/jsonx'],
  ])('the content type %s is not JSON', (type) => {
    expect(() => {
      checkJsonType(type);
    }).toThrow(expect.objectContaining({ code: 'unsupported_media_type' }) as Error);
  });
});

test('a byte order mark is skipped', () => {
  expect(parseJson(Buffer.from('\ufeff{"a":1}', 'utf8'))).toEqual({ a: 1 });
});

test('an Idempotency-Key is a UUID in any case', () => {
  expect(idempotencyKey(undefined)).toBeNull();
  expect(idempotencyKey('6F9619FF-8B86-D011-B42D-00CF4FC964FF')).toBe('6f9619ff-8b86-d011-b42d-00cf4fc964ff');
  for (const bad of ['', 'x', '6f9619ff8b86d011b42d00cf4fc964ff', '6f9619ff-8b86-d011-b42d-00cf4fc964fg', ['a', 'b']]) {
    expect(() => idempotencyKey(bad)).toThrow(expect.objectContaining({ code: 'invalid_request' }) as Error);
  }
});

describe('confirmations', () => {
  const ack = (value: unknown) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const positionOf = (stream: string, seq: number) => (stream === 'INGEST' ? seq + 100 : undefined);
    return readAck({ data: Buffer.from(text), string: () => text }, positionOf);
  };

  test('only a sequence of the ingest log counts as a confirmation', () => {
    expect(ack({ stream: 'INGEST', seq: 5 })).toEqual({ kind: 'stored', position: 105 });
    expect(ack({ stream: 'INGEST', seq: 5, duplicate: true })).toEqual({ kind: 'stored', position: 105 });
    for (const other of [
      { stream: 'EVENTS', seq: 5 },
      { stream: 'INGEST' },
      {},
      null,
      'x',
      '',
      { stream: 'INGEST', seq: 0 },
    ]) {
      expect(ack(other)).toMatchObject({ kind: 'failed' });
    }
  });

  test('a full log is distinguished from a failing one by the text of the same code', () => {
    expect(ack({ error: { code: 503, err_code: 10077, description: 'maximum bytes exceeded' } })).toMatchObject({
      kind: 'full',
    });
    expect(ack({ error: { code: 429, err_code: 10167, description: 'too many requests' } })).toMatchObject({
      kind: 'full',
    });
    expect(ack({ error: { code: 503, err_code: 10077, description: 'no space left on device' } })).toMatchObject({
      kind: 'failed',
    });
    expect(ack({ error: { code: 503, err_code: 10023, description: 'insufficient resources' } })).toMatchObject({
      kind: 'failed',
    });
    expect(ack({ error: 'x' })).toMatchObject({ kind: 'failed' });
  });
});

test('expositions of several processes join into one, each family once', () => {
  const of = (process: string) =>
    `# HELP a_total A\n# TYPE a_total counter\na_total{process="${process}"} 1\n\n# HELP b B\n# TYPE b gauge\nb{process="${process}"} 2\n`;
  expect(joinExpositions([of('api'), of('w1'), ''])).toBe(
    '# HELP a_total A\n# TYPE a_total counter\na_total{process="api"} 1\na_total{process="w1"} 1\n# HELP b B\n# TYPE b gauge\nb{process="api"} 2\nb{process="w1"} 2\n',
  );
});
