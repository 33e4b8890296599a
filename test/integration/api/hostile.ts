// Generators of hostile requests. Each request is well-formed enough to reach the API and invalid
// in any other way.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { bodyOf, text } from './hostile_bodies.ts';
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
