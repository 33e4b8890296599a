// Redaction of texts and values: what is found and replaced, what stays, and how finds are hashed.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { redactor, shown } from './redacting.ts';

it.each([
  ['write to jo.doe+x@mail.example.co.uk.', 'write to [EMAIL].'],
  ['<müller@exämple.de>', '<[EMAIL]>'],
  ['card 4111 1111 1111 1111, or 5500-0000-0000-0004', 'card [CARD], or [CARD]'],
  ['amex 378282246310005', 'amex [CARD]'],
  ['order 4111111111111112 and 0000000000000000', 'order 4111111111111112 and 0000000000000000'],
  ['ssn 123-45-6789, not 000-45-6789 nor 123-00-6789', 'ssn [SSN], not 000-45-6789 nor 123-00-6789'],
  ['from 192.168.0.1:8080 and 999.1.1.1', 'from [IP]:8080 and 999.1.1.1'],
  ['at 2001:db8::ff00:42:8329 and fe80::1', 'at [IP] and [IP]'],
  ['at 12:30:45 and ratio 3:2', 'at 12:30:45 and ratio 3:2'],
  ['call +1 (415) 555-2671 or 415-555-2671 or (415) 555 2671', 'call [PHONE] or [PHONE] or [PHONE]'],
  ['ruf +49 30 901820 oder 030 90182000 an', 'ruf [PHONE] oder [PHONE] an'],
  ['555-123-4567 or 123-456-7890 or 1-555-123-4567', '[PHONE] or [PHONE] or [PHONE]'],
  ['(555.123.4567), 1 555-123-4567; "987-012-3456"', '([PHONE]), [PHONE]; "[PHONE]"'],
  ['{"contact":"555-123-4567","a":"x\\n555-101-0000"}', '{"contact":"[PHONE]","a":"x\\n[PHONE]"}'],
  ['A555-123-4567, 555-123-4567a and item_555-123-4567', 'A555-123-4567, 555-123-4567a and item_555-123-4567'],
  [
    '7-555-123-4567, 555-123-4567-8, 555-123-45678 and 1555-123-4567',
    '7-555-123-4567, 555-123-4567-8, 555-123-45678 and 1555-123-4567',
  ],
  ['v555.123.4567, 9.555.123.4567 and 555.123.4567.8', 'v555.123.4567, 9.555.123.4567 and 555.123.4567.8'],
  [
    '$555.123.4567, -555.123.4567, 555.123.4567 % and 555.123.4567%',
    '$555.123.4567, -555.123.4567, [PHONE] % and 555.123.4567%',
  ],
  [
    '555-123.4567, 102-204-3060, 555-000-1234 and 012.345.6789',
    '555-123.4567, 102-204-3060, 555-000-1234 and 012.345.6789',
  ],
  ['from 10.123.456.7890 at 123.45.67.89', 'from 10.123.456.7890 at [IP]'],
  ['on 2026-11-21 09:50:00 and 2026-11-21T09:50:00Z', 'on 2026-11-21 09:50:00 and 2026-11-21T09:50:00Z'],
  ['ids 1234567890, v1.22.333 and 1000 2000 3000 tokens', 'ids 1234567890, v1.22.333 and 1000 2000 3000 tokens'],
  ['pay with 4111 1111 1111 1111 123', 'pay with [CARD] 123'],
  ['line\\nann@example.com and line\\n123-45-6789', 'line\\n[EMAIL] and line\\n[SSN]'],
  ['', ''],
])('personal data in a text is replaced by its label, and only that: %s', (text, expected) => {
  expect(shown(text)).toBe(expected);
});

it('personal data of a kind that is not asked for stays', () => {
  expect(shown('ann@example.com from 10.0.0.1', { kinds: ['ip'] })).toBe('ann@example.com from [IP]');
  expect(shown('ann@example.com from 10.0.0.1', { kinds: [] })).toBe('ann@example.com from 10.0.0.1');
});

it('a find of an own pattern gets its label', () => {
  const custom = [
    { label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' },
    { label: 'project', pattern: '(?i)project (falcon|heron)' },
  ];
  expect(shown('EMP-123456 works on Project Heron', { custom })).toBe('[EMPLOYEE] works on [project]');
});

it('overlapping finds are replaced by the label of the longest, in any order of patterns', () => {
  const custom = [
    { label: 'TAIL', pattern: 'com now' },
    { label: 'HEAD', pattern: 'mail ann' },
  ];
  const text = 'mail ann@example.com now';
  expect(shown(text, { custom })).toBe('[EMAIL]');
  expect(shown(text, { custom: custom.toReversed() })).toBe('[EMAIL]');
  expect(
    shown('abc', {
      kinds: [],
      custom: [
        { label: 'ONE', pattern: 'ab' },
        { label: 'TWO', pattern: 'bc' },
      ],
    }),
  ).toBe('[ONE]');
});

it('each find is replaced and nothing else, wherever it stands among others', () => {
  const part = fc.constantFrom<[string, string]>(
    ['ann@example.com', '[EMAIL]'],
    ['10.0.0.1', '[IP]'],
    ['+1 415 555 2671', '[PHONE]'],
    ['4111111111111111', '[CARD]'],
    ['123-45-6789', '[SSN]'],
    ['EMP-123456', '[EMPLOYEE]'],
    ['order 4711', 'order 4711'],
    ['2026-11-21', '2026-11-21'],
    ['a@b', 'a@b'],
  );
  const custom = [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }];
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), fc.constantFrom(', ', '; ', '\n', ' | '), (parts, between) => {
      const text = parts.map(([written]) => written).join(between);
      expect(shown(text, { custom })).toBe(parts.map(([, replaced]) => replaced).join(between));
      expect(shown(shown(text))).toBe(shown(text));
    }),
  );
});

const hash_key = Buffer.alloc(32, 7);

it('the hash of a find is the same for every way of writing the value and differs for another value', () => {
  const [one = '', two, three] =
    shown('a: Ann@Example.com b: ann@example.com c: bob@example.com', { hash_key }).match(/\[EMAIL:[0-9a-f]{12}\]/g) ??
    [];
  expect(one).toMatch(/^\[EMAIL:[0-9a-f]{12}\]$/);
  expect([two === one, three === one]).toEqual([true, false]);
  const [card, spaced] = shown('4111111111111111, 4111 1111 1111 1111', { hash_key }).split(', ');
  expect(card).toBe(spaced);
});

it('the hash of a find differs under the key of another organization', () => {
  expect(shown('ann@example.com', { hash_key })).not.toBe(shown('ann@example.com', { hash_key: Buffer.alloc(32, 8) }));
});

it('a value is redacted at any depth, in strings, field names and numbers, and a clean value is the same object', () => {
  const redaction = redactor().begin();
  const value = {
    a: ['x', { b: 'ann@example.com', 'bob@example.com': 1, 'carl@example.com': 2 }],
    card: 4111111111111111,
    n: 4111111111111112,
  };
  expect(redaction.value(value)).toEqual({
    a: ['x', { b: '[EMAIL]', '[EMAIL]': 1, '[EMAIL] 2': 2 }],
    card: '[CARD]',
    n: 4111111111111112,
  });
  expect(redaction.takeKinds()).toEqual(['card', 'email']);
  const clean = { a: [1, 'x', { b: null }], 'k-1': true };
  expect(redaction.value(clean)).toBe(clean);
  expect(redaction.takeKinds()).toEqual([]);
});

it('a number is searched together with the name of its field', () => {
  const redaction = redactor().begin();
  expect(
    redaction.value({ phone: '5551234567', ssn: '123456789', order: '5551234567', homePhone: '5551234567' }),
  ).toEqual({
    phone: '[PHONE]',
    ssn: '[SSN]',
    order: '5551234567',
    homePhone: '[PHONE]',
  });
});

it('a whole number is redacted as the same digits in a text are', () => {
  const redaction = redactor({ custom: [{ label: 'EMP', pattern: '\\b\\d{5}\\b' }] }).begin();
  expect(
    redaction.value({
      phone: 5551234567,
      ssn: 123456789,
      order: 5551234567,
      employee: 12345,
      cost: 12345.5,
      n: 123,
      count: -5,
    }),
  ).toEqual({
    phone: '[PHONE]',
    ssn: '[SSN]',
    order: 5551234567,
    employee: '[EMP]',
    cost: 12345.5,
    n: 123,
    count: -5,
  });
  expect(redaction.takeKinds()).toEqual(['EMP', 'phone', 'ssn']);
  expect(redaction.textOrJson('{"name":"Ann","phone":5551234567,"order":5551234567}')).toBe(
    '{"name":"Ann","phone":"[PHONE]","order":5551234567}',
  );
  expect(redaction.textOrJson('{"mail":"ann\\u0040example.com"}')).toBe('{"mail":"[EMAIL]"}');
});

it('personal data in a URL is found in its percent-encoding and has the same hash', () => {
  expect(shown('https://shop.test/reset?email=ann%40example.com&x=1')).toBe(
    'https://shop.test/reset?email=[EMAIL]&x=1',
  );
  const key = { hash_key: Buffer.alloc(32, 7) };
  expect(shown('ann%40example.com', key)).toBe(shown('ann@example.com', key));
  expect(shown('100%40 of 3')).toBe('100%40 of 3');
});

// A dotted quad behind a word such as "version" used to stay: an address that stays in the text is the worse error.
it.each([
  ['version 1.2.3.4', 'version [IP]'],
  ['version: 203.0.113.7', 'version: [IP]'],
  ['upgraded to 10.0.0.1', 'upgraded to [IP]'],
  ['section 4.3.2.1, oid 1.2.3.4', 'section [IP], oid [IP]'],
  ['Chrome/119.0.60.105', 'Chrome/[IP]'],
  ['windows 192.168.0.1 chrome 255.255.255.255', 'windows [IP] chrome [IP]'],
])('a dotted quad after any word is redacted as an IP address: %s', (text, expected) => {
  expect(shown(text)).toBe(expected);
});

it.each(['v1.2.3.4', 'version 1.2.3.256', 'version 1.2.3.4.5', '1.2.3.4-beta', 'lib-2.0.1.4.jar'])(
  'a dotted quad whose form makes it a version stays: %s',
  (text) => {
    expect(shown(text)).toBe(text);
  },
);

it('a dotted quad after a host name is redacted, and a version with a part above 255 stays', () => {
  expect(shown('Connection refused: db.internal/10.1.2.3:5432')).toBe('Connection refused: db.internal/[IP]:5432');
  expect(shown('no route to db-1/10.1.2.3:5432')).toBe('no route to db-1/[IP]:5432');
  expect(shown('Mozilla/5.0 Chrome/119.0.6045.105 Safari/537.36')).toBe(
    'Mozilla/5.0 Chrome/119.0.6045.105 Safari/537.36',
  );
});

it('JSON text stays the same JSON value after redaction, with the digits of long numbers', () => {
  const redaction = redactor({ custom: [{ label: 'QUOTED', pattern: '".*"' }] }).begin();
  const text = '{"phone":"5551234567","id":12345678901234567890,"text":"a\\nbob@example.com","f":1.5}';
  expect(redaction.textOrJson(text)).toBe('{"phone":"[PHONE]","id":12345678901234567890,"text":"a\\n[EMAIL]","f":1.5}');
  expect(redaction.textOrJson('{"broken": ann@example.com')).toBe('{[QUOTED]: [EMAIL]');
});

it.each([200, 4000, 100_000])('JSON text of %d levels is redacted as a text', (levels) => {
  const redaction = redactor().begin();
  const nested = (leaf: string): string => `${'['.repeat(levels)}${leaf}${']'.repeat(levels)}`;
  expect(redaction.textOrJson(nested('"ann@example.com", 4111111111111111'))).toBe(nested('"[EMAIL]", [CARD]'));
});
