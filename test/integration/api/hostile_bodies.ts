// Generators of hostile request bodies: odd texts and values in valid examples, bodies that are not
// JSON, and compressed ones.
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';

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

/** Mostly texts of the list, and some random ones. */
export const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
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

/** Bodies near a valid example, far from it, compressed wrongly, or far larger than they look. */
export const bodyOf = (
  example: unknown,
): fc.Arbitrary<{ body: Buffer; what: string; headers: Record<string, string> }> => {
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
