import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileLinear } from '../../../pipeline/domain/patterns/linear_regex.ts';
import { checkOwnPatterns, UnusablePattern } from '../../../pipeline/domain/pii/custom.ts';
import { PiiRedactor, type PiiRules } from '../../../pipeline/domain/pii/pii.ts';
import { isTold, piiMatches } from '../../../pipeline/domain/pii/match_sample.ts';
import { beginningOf } from '../../../pipeline/domain/pii/prefix.ts';
import { PII_KINDS } from '../../../schemas/records/pii_policy.ts';
import { aSpan } from '../../support/spans.ts';

const redactor = (rules: Partial<PiiRules> = {}): PiiRedactor =>
  new PiiRedactor({ kinds: PII_KINDS, custom: [], hash_key: null, ...rules });
const shown = (text: string, rules: Partial<PiiRules> = {}): string => redactor(rules).begin().text(text);

describe('a text', () => {
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
  ])('%s', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it('keeps what is of no kind that is asked for', () => {
    expect(shown('ann@example.com from 10.0.0.1', { kinds: ['ip'] })).toBe('ann@example.com from [IP]');
    expect(shown('ann@example.com from 10.0.0.1', { kinds: [] })).toBe('ann@example.com from 10.0.0.1');
  });

  it('has the label of an own pattern where that matches', () => {
    const custom = [
      { label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' },
      { label: 'project', pattern: '(?i)project (falcon|heron)' },
    ];
    expect(shown('EMP-123456 works on Project Heron', { custom })).toBe('[EMPLOYEE] works on [project]');
  });

  it('has overlapping finds replaced together, by the label of the longest, whatever the order of patterns', () => {
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

  it('has each find replaced and nothing else, wherever it stands among others', () => {
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
});

describe('a hash', () => {
  const hash_key = Buffer.alloc(32, 7);

  it('is the same for the same value, however it is written, and no other', () => {
    const [one = '', two, three] =
      shown('a: Ann@Example.com b: ann@example.com c: bob@example.com', { hash_key }).match(
        /\[EMAIL:[0-9a-f]{12}\]/g,
      ) ?? [];
    expect(one).toMatch(/^\[EMAIL:[0-9a-f]{12}\]$/);
    expect([two === one, three === one]).toEqual([true, false]);
    const [card, spaced] = shown('4111111111111111, 4111 1111 1111 1111', { hash_key }).split(', ');
    expect(card).toBe(spaced);
  });

  it('is another one under the key of another org', () => {
    expect(shown('ann@example.com', { hash_key })).not.toBe(
      shown('ann@example.com', { hash_key: Buffer.alloc(32, 8) }),
    );
  });
});

describe('a value', () => {
  it('is redacted at any depth, in strings, names of fields and card numbers, and is the same object where there is nothing', () => {
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

  it('that is a number is read together with the name of its field', () => {
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

  it('that is a whole number is read as one that is a text, whatever the sender chose', () => {
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

  it('that is in the address of a page is found as URLs write it, and hashed as the same', () => {
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
  ])('is redacted as an address whatever word stands before the dotted quad: %s', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it.each(['v1.2.3.4', 'version 1.2.3.256', 'version 1.2.3.4.5', '1.2.3.4-beta', 'lib-2.0.1.4.jar'])(
    'stays when its own form makes it a version: %s',
    (text) => {
      expect(shown(text)).toBe(text);
    },
  );

  it('that is a machine behind a name is one, and a version with a part beyond 255 is none', () => {
    expect(shown('Connection refused: db.internal/10.1.2.3:5432')).toBe('Connection refused: db.internal/[IP]:5432');
    expect(shown('no route to db-1/10.1.2.3:5432')).toBe('no route to db-1/[IP]:5432');
    expect(shown('Mozilla/5.0 Chrome/119.0.6045.105 Safari/537.36')).toBe(
      'Mozilla/5.0 Chrome/119.0.6045.105 Safari/537.36',
    );
  });

  it('that is JSON text stays JSON, as the value it is, with the digits of long numbers', () => {
    const redaction = redactor({ custom: [{ label: 'QUOTED', pattern: '".*"' }] }).begin();
    const text = '{"phone":"5551234567","id":12345678901234567890,"text":"a\\nbob@example.com","f":1.5}';
    expect(redaction.textOrJson(text)).toBe(
      '{"phone":"[PHONE]","id":12345678901234567890,"text":"a\\n[EMAIL]","f":1.5}',
    );
    expect(redaction.textOrJson('{"broken": ann@example.com')).toBe('{[QUOTED]: [EMAIL]');
  });

  it.each([200, 4000, 100_000])('that is JSON text of %d levels is redacted as a text', (levels) => {
    const redaction = redactor().begin();
    const nested = (leaf: string): string => `${'['.repeat(levels)}${leaf}${']'.repeat(levels)}`;
    expect(redaction.textOrJson(nested('"ann@example.com", 4111111111111111'))).toBe(nested('"[EMAIL]", [CARD]'));
  });
});

describe('an own pattern', () => {
  const finds = (pattern: string, text: string): string =>
    shown(text, { kinds: [], custom: [{ label: 'X', pattern }] });

  it.each(['(', '(?=a)b', '(a)\\1', 'a*', 'x{100000}', '^'])('is refused with a reason: %s', (pattern) => {
    expect(() => {
      checkOwnPatterns([pattern]);
    }).toThrow(UnusablePattern);
  });

  it.each([
    ['EMP-\\d{6}', 'a EMP-123456 b', 'a [X] b'],
    ['\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,30}\\b', 'IBAN DE89370400440532013000.', 'IBAN [X].'],
    ['(?i)secret-[a-z]+', 'SECRET-abc secret-Def', '[X] [X]'],
    ['^a', 'aa', '[X]a'],
    ['[^ ]+@corp', 'me@corp', '[X]'],
    ['ſecret', 'ſecret', '[X]'],
    ['(?i)kelvin', '\u212aelvin', '[X]'],
    ['x?yz{2,}', 'yzzz', '[X]'],
    ['[a\\-c]-\\d', '--1 a-2', '[X] [X]'],
  ])('%s', (pattern, text, expected) => {
    expect(finds(pattern, text)).toBe(expected);
  });

  it('is found wherever it stands in a long text, and in its whole length', () => {
    for (const lead of [0, 1, 1000, 1023, 1024, 1500, 2047, 2048, 5000]) {
      expect(finds('<a+>', `${'-'.repeat(lead)}<${'a'.repeat(900)}>${'-'.repeat(3000)}`)).toBe(
        `${'-'.repeat(lead)}[X]${'-'.repeat(3000)}`,
      );
    }
  });
});

describe('the beginning of a pattern', () => {
  const part = fc.constantFrom(
    'a',
    'B',
    '7',
    '-',
    '\\d',
    '\\w',
    '\\s',
    '\\b',
    '\\.',
    '[a-c]',
    '[^a]',
    '[A-Z0-9_]',
    '[\\d-]',
    '(?:ab)',
    '.',
    '^',
    'é',
    'ſ',
    'K',
  );
  const repeat = fc.constantFrom('', '', '', '?', '+', '*', '{2}', '{1,3}', '{2,}', '+?');
  const pattern = fc
    .tuple(fc.constantFrom('', '(?i)'), fc.array(fc.tuple(part, repeat), { minLength: 1, maxLength: 5 }))
    .map(
      ([flags, parts]) =>
        flags + parts.map(([atom, times]) => (atom === '\\b' || atom === '^' ? atom : atom + times)).join(''),
    );
  const text = fc.string({
    unit: fc.constantFrom(
      'a',
      'A',
      'b',
      'B',
      'c',
      '7',
      '1',
      '-',
      '.',
      ' ',
      '_',
      '\n',
      'é',
      's',
      'ſ',
      'k',
      'K',
      '\u212a',
    ),
    maxLength: 12,
  });

  it('is in every text that holds a match', () => {
    fc.assert(
      fc.property(pattern, text, (written, read) => {
        const beginning = beginningOf(written);
        if (beginning === null || !compileLinear(written).test(read)) return;
        expect([written, read, beginning.test(read), read.length >= beginning.length]).toEqual([
          written,
          read,
          true,
          true,
        ]);
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ['EMP-\\d{6}', 10],
    ['\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,30}\\b', 15],
    ['(?i)secret[ -]?key', 9],
    ['ab+c', 2],
  ])('says something of %s', (written, length) => {
    expect(beginningOf(written)?.length).toBe(length);
  });

  it.each(['a|b', '.*secret', '(ab)', '\\d', '[[:alpha:]]x', '\\pLab'])('says nothing of %s', (written) => {
    expect(beginningOf(written)).toBeNull();
  });
});

describe('time is linear in the text: a megabyte is done with, whatever it holds', () => {
  const MEGABYTE = 1024 * 1024;
  const pieces = [
    'a',
    '1',
    '1 ',
    'a.',
    '-1',
    '+1',
    '(1) ',
    '1.',
    'f:',
    ':',
    '@',
    'a@',
    'a@a.',
    '0 ',
    '+',
    '(',
    '+1(',
    '11-11-',
    '1-',
    '1.1.1.1.',
    '::1',
    '\\n',
    'call 1',
    '4111-',
    'ssn',
    'tel 1 ',
    'é',
    '字@',
    'a%40',
    '((1',
    'a_1234567',
    '1.1.1.1 ',
    '555-123-4567',
  ];

  // Quadratic time would be hours here; the test ends by its timeout then.
  it.each(pieces)('nothing but "%s"', (piece) => {
    expect(shown(piece.repeat(MEGABYTE / piece.length)).length).toBeGreaterThan(0);
  });

  it('a field of a long name with many numbers as its values', () => {
    // Each number was read together with the whole name: the name's length times the number of values.
    const value = { ['p'.repeat(MEGABYTE)]: Array.from({ length: 100_000 }, (_, n) => String(5_551_230_000 + n)) };
    expect(Object.values(redactor().begin().value(value) as Record<string, unknown[]>)[0]).toHaveLength(100_000);
  });

  it.each(['x[^y]*y|x', '(x+x+)+y', 'x.*x.*y', '(?:x|xx)+$', 'x'])('the own pattern %s', (pattern) => {
    expect(shown('x'.repeat(MEGABYTE), { kinds: [], custom: [{ label: 'X', pattern }] }).length).toBeGreaterThan(0);
  });
});

describe('pii.match', () => {
  const spans = Array.from({ length: 20_000 }, (_, index) =>
    aSpan({ span_id: `spn_${String(index)}`, event_hex: index.toString(16).padStart(16, '0'), redacted: ['email'] }),
  );

  it('is told of one redaction in a thousand, of the same ones every time', () => {
    const told = piiMatches(spans);
    expect(told.length).toBeGreaterThan(5);
    expect(told.length).toBeLessThan(45);
    expect(piiMatches(spans)).toEqual(told);
    const { org_id, trace_id, payload } = told[0] ?? {};
    expect(payload).toEqual({ event: 'pii.match', org_id, trace_id, span_id: payload?.span_id, kinds: ['email'] });
    expect(new Set(told.map(({ subject }) => subject)).size).toBe(told.length);
  });

  it('is not told of spans in which nothing was redacted', () => {
    expect(piiMatches(spans.map((span) => ({ ...span, redacted: [] })))).toEqual([]);
    expect(spans.some(({ event_hex, span_id }) => isTold(event_hex, span_id))).toBe(true);
  });
});
