// Generators of hostile requests. Each request is well-formed enough to reach the API and invalid
// in any other way.
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { Operation } from './a_cast.ts';

export interface HostileCase {
  /** Index of the operation, modulo the number of operations. */
  operation: number;
  caller: 'owner' | 'key' | 'operator';
  /** Path as it is sent. */
  path: string;
  query: string;
  headers: Record<string, string>;
  body: Buffer;
  /** Description of the body for a person who reads the failing case. */
  what: string;
}

/** Texts that have broken some program before. */
const TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  '1e9',
  '1.5',
  'NaN',
  'Infinity',
  '9007199254740993',
  '99999999999999999999999999',
  'null',
  'undefined',
  'true',
  '[object Object]',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  "'; DROP TABLE spans; --",
  "' OR 1=1 --",
  '{param:String}',
  '${7*7}',
  '%',
  '%00',
  '%s%n',
  '..',
  '../../etc/passwd',
  '$KV.orgs.>',
  'a.b.*',
  '*',
  '>',
  'a/b',
  'a\\b',
  '\u0000',
  'a\u0000b',
  '\u0001\u001f',
  '\ud800',
  '\udfff\ud800',
  '💥🏴‍☠️',
  'ﷺ',
  'İi̇',
  '\u202e',
  '<script>alert(1)</script>',
  '2026-02-30T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '0001-01-01T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  '2026-01-01',
  'x'.repeat(300),
  'é'.repeat(1000),
  '(a+)+$',
  '"unbalanced',
  '\r\nX-Injected: 1',
] as const;

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);

/**
 * Percent-encodes characters that a request line cannot hold. A lone surrogate becomes its three
 * bytes, which are not valid UTF-8.
 */
function encoded(value: string): string {
  return Array.from(value)
    .map((char) => {
      const code = char.codePointAt(0) ?? 0;
      if (code >= 0xd800 && code <= 0xdfff)
        return `%ED%${(0xa0 + ((code >> 6) & 0x1f)).toString(16)}%${(0x80 + (code & 0x3f)).toString(16)}`;
      return encodeURIComponent(char);
    })
    .join('');
}

/** Raw parts of a URL: encoded correctly, encoded twice, not encoded, or not valid UTF-8. */
const piece = fc.oneof(
  { weight: 6, arbitrary: text.map(encoded) },
  { weight: 1, arbitrary: text.map((value) => encodeURIComponent(encoded(value))) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '%',
      '%zz',
      '%ff%fe',
      '%c3%28',
      '%00',
      '%E0%80%80',
      '%2e%2e%2f',
      '%252e',
      ';x=1',
      'a%0d%0aX-Injected:%201',
    ),
  },
);

const LEAVES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  9007199254740993,
  2 ** 31,
  2 ** 63,
  [],
  {},
  [[[[[]]]]],
  [null],
  { toString: 1 },
  { then: 1 },
  ...TEXTS,
];
/** Raw JSON texts, because JSON.stringify cannot produce them. */
const RAW_LEAVES = [
  '1e999',
  '-0',
  '123456789012345678901234567890',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '"\\ud800"',
  '"\\u0000"',
  '[[[['.repeat(50) + ']]]]'.repeat(50),
];
const MARK = '@@raw@@';

type Path = readonly (string | number)[];

function pathsIn(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [
    at,
    ...Object.entries(value).flatMap(([key, inner]) =>
      pathsIn(inner, [...at, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

function changedAt(value: unknown, path: Path, change: (old: unknown) => unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  if (Array.isArray(value))
    return value.map((item, index) => (index === key ? changedAt(item, rest, change) : item) as unknown);
  const entries = Object.entries(value as Record<string, unknown>);
  return Object.fromEntries(
    entries.map(([name, inner]) => [name, name === key ? changedAt(inner, rest, change) : inner]),
  );
}

/** One change to a valid body. */
const mutation = fc.record({
  at: fc.nat(1000),
  how: fc.constantFrom('replace', 'replace', 'replace', 'raw', 'drop', 'add', 'wrap', 'repeat'),
  leaf: fc.constantFrom(...LEAVES),
  raw: fc.constantFrom(...RAW_LEAVES),
  name: fc.constantFrom('__proto__', 'constructor', 'extra', '', 'org_id', 'x'.repeat(1000), '\u0000'),
});
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutated(example: unknown, mutations: readonly Mutation[]): string {
  let value = structuredClone(example);
  const raws: string[] = [];
  for (const { at, how, leaf, raw, name } of mutations) {
    const paths = pathsIn(value);
    const path = paths[at % paths.length] ?? [];
    value = changedAt(value, path, (old) => {
      if (how === 'replace') return leaf;
      if (how === 'raw') return `${MARK}${raws.push(raw) - 1}${MARK}`;
      if (how === 'drop') return undefined;
      if (how === 'wrap') return [old];
      if (how === 'repeat')
        return Array.isArray(old)
          ? Array.from({ length: 1100 }, () => old[0] as unknown)
          : JSON.stringify([old]).repeat(50);
      return typeof old === 'object' && old !== null && !Array.isArray(old)
        ? { ...old, [name]: leaf }
        : { [name]: old };
    });
  }
  const json = (JSON.stringify(value) as string | undefined) ?? '';
  return json.replaceAll(
    new RegExp(`"${MARK}(\\d+)${MARK}"`, 'g'),
    (_, index: string) => raws[Number(index)] ?? 'null',
  );
}

/** Bodies that are not JSON, or JSON that is built to do harm. */
const NO_BODIES: readonly (readonly [what: string, body: Buffer | string])[] = [
  ['nothing', ''],
  ['white space', ' \n\t'],
  ['null', 'null'],
  ['a number', '1e999'],
  ['a text', '"text"'],
  ['a list', '[]'],
  ['an object', '{}'],
  ['half an object', '{"a":'],
  ['two values', '{}{}'],
  ['a byte order mark', '\ufeff{}'],
  ['UTF-16', Buffer.from('{"a":1}', 'utf16le')],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['NUL', Buffer.from([0, 0, 0])],
  ['deep lists', '['.repeat(20_000)],
  ['deep lists that end', '['.repeat(3000) + ']'.repeat(3000)],
  ['deep objects that end', '{"a":'.repeat(3000) + '1' + '}'.repeat(3000)],
  ['many keys', `{${Array.from({ length: 5000 }, (_, n) => `"k${n}":1`).join(',')}}`],
  ['one key twice', '{"name":1,"name":"b"}'],
  ['a long text', JSON.stringify({ name: 'x'.repeat(200_000) })],
  ['the prototype', '{"__proto__":{"polluted":true},"name":"x"}'],
  ['a form', 'name=x&scopes=*'],
  ['XML', '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'],
];

/** 24 MiB of spaces, compressed to a few KiB. */
const BOMB_GZIP = gzipSync(Buffer.alloc(24 * 1024 * 1024, 0x20));
const BOMB_BROTLI = brotliCompressSync(Buffer.alloc(24 * 1024 * 1024, 0x20));

/** Only printable characters: an HTTP client library refuses to send others in a header. */
const headerText = text.map((value) => value.replace(/[^\x20-\x7e\x80-\xff]/g, '').slice(0, 500));
const headers = fc.record(
  {
    'Content-Type': fc.constantFrom(
      'application/json',
      'application/json; charset=utf-8',
      'application/json; charset=utf-16',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain',
      'application/x-protobuf',
      'application/ld+json',
      ';;;',
      '',
    ),
    'X-Org-Id': headerText,
    'X-Service-Api-Version': fc.oneof(fc.constantFrom('1.7', '1.7.x', '1.8', '2', 'x'), headerText),
    'Idempotency-Key': fc.oneof(fc.constant(''), fc.uuid(), headerText).map((key) => (key === '' ? randomUUID() : key)),
    Cookie: headerText.map((value) => `svc_session=${value}; svc_session=a.b.c`),
    Origin: fc.constantFrom('null', 'https://evil.example', 'http://', 'file://', '%%%'),
    'Sec-Fetch-Site': fc.constantFrom('cross-site', 'same-origin', 'none', ''),
    Accept: fc.constantFrom('text/html', 'application/xml', '*/*;q=0', ''),
    'If-None-Match': headerText,
    Range: fc.constantFrom('bytes=0-1', 'bytes=-1', 'x'),
    'X-Forwarded-For': headerText,
    'X-HTTP-Method-Override': fc.constantFrom('DELETE', 'PATCH'),
    'X-Request-Id': headerText,
    Expect: fc.constant('100-continue'),
  },
  { requiredKeys: [] },
);
/**
 * Most requests carry one or two odd headers instead of all of them, because the first header to be
 * rejected would hide the others.
 */
const fewHeaders = fc.tuple(headers, fc.nat(12), fc.nat(20)).map(([all, from, take]) => {
  const entries = Object.entries(all);
  return Object.fromEntries(take > 12 ? [] : entries.slice(from % (entries.length + 1)).slice(0, take > 9 ? 3 : 1));
});

/**
 * Mostly parameters that the operation accepts, each once. The API rejects unknown parameters
 * before it checks anything else.
 */
const queryOf = (names: readonly string[]): fc.Arbitrary<string> => {
  const pairs = (name: fc.Arbitrary<string>, isUnique: boolean) => {
    const pair = fc.tuple(name, piece);
    return isUnique
      ? fc.uniqueArray(pair, { maxLength: 4, selector: ([key]) => key })
      : fc.array(pair, { maxLength: 4 });
  };
  const odd = fc.constantFrom(
    ...names,
    'limit',
    'offset',
    'cursor',
    '__proto__',
    'a[b]',
    'a[]',
    '',
    '%',
    'limit%00',
    'constructor',
  );
  return fc
    .oneof(
      { weight: 9, arbitrary: names.length === 0 ? fc.constant([]) : pairs(fc.constantFrom(...names), true) },
      { weight: 1, arbitrary: pairs(odd, false) },
    )
    .map((query) => query.map(([key, value]) => `${key}=${value}`).join('&'));
};

const bodyOf = (example: unknown): fc.Arbitrary<{ body: Buffer; what: string; headers: Record<string, string> }> => {
  const near = fc.array(mutation, { maxLength: 3 }).map((mutations) => {
    const json = mutated(example ?? {}, mutations);
    return { body: Buffer.from(json), what: json.slice(0, 500), headers: {} };
  });
  const far = fc.constantFrom(...NO_BODIES).map(([what, body]) => ({ body: Buffer.from(body), what, headers: {} }));
  const packed = fc
    .tuple(
      fc.oneof(near, far),
      fc.constantFrom('gzip', 'br', 'deflate', 'x-gzip', 'gzip, gzip', 'identity', 'nonsense'),
      fc.nat(5),
    )
    .map(([{ body, what }, encoding, cut]) => {
      const bytes =
        encoding === 'gzip' || encoding === 'x-gzip'
          ? gzipSync(body)
          : encoding === 'br'
            ? brotliCompressSync(body)
            : body;
      const sent = cut === 0 ? bytes.subarray(0, bytes.length >> 1) : bytes;
      return {
        body: sent,
        what: `${encoding}${cut === 0 ? ', cut,' : ''} of ${what}`,
        headers: { 'Content-Encoding': encoding },
      };
    });
  const bomb = fc.constantFrom(
    { body: BOMB_GZIP, what: 'a bomb in gzip', headers: { 'Content-Encoding': 'gzip' } },
    { body: BOMB_BROTLI, what: 'a bomb in brotli', headers: { 'Content-Encoding': 'br' } },
  );
  return fc.oneof(
    { weight: 60, arbitrary: near },
    { weight: 20, arbitrary: far },
    { weight: 8, arbitrary: packed },
    { weight: 1, arbitrary: bomb },
  );
};

const NO_BODY = { body: Buffer.alloc(0), what: '', headers: {} };

/**
 * Returns a generator of hostile requests to any of the operations.
 * @param known values of existing resources, by their names in paths
 */
export function hostileCases(
  operations: readonly Operation[],
  known: Readonly<Record<string, string>>,
): fc.Arbitrary<HostileCase> {
  const perOperation = operations.map((operation, index) => {
    const names = [...operation.template.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name ?? '');
    const values = fc.tuple(
      ...names.map((name) =>
        fc.oneof(
          { weight: name === 'org_id' ? 12 : 1, arbitrary: fc.constant(known[name] ?? 'x1') },
          { weight: 1, arbitrary: piece },
        ),
      ),
    );
    const body = operation.method === 'GET' ? fc.constant(NO_BODY) : bodyOf(operation.body);
    const caller =
      operation.access === 'operator'
        ? fc.constant('operator' as const)
        : fc.oneof(
            { weight: 6, arbitrary: fc.constant('owner' as const) },
            { weight: 4, arbitrary: fc.constant('key' as const) },
            { weight: 1, arbitrary: fc.constant('operator' as const) },
          );
    return fc
      .record({
        caller,
        values,
        query: queryOf(operation.query.map(({ name }) => name)),
        headers: fewHeaders,
        sent: body,
      })
      .map((one): HostileCase => {
        const path = names.reduce(
          (text, name, at) => text.replace(`{${name}}`, () => one.values[at] ?? ''),
          operation.template,
        );
        return {
          operation: index,
          caller: one.caller,
          path,
          query: one.query,
          headers: { ...one.headers, ...one.sent.headers },
          body: one.sent.body,
          what: one.sent.what,
        };
      });
  });
  return fc.oneof(...perOperation);
}
