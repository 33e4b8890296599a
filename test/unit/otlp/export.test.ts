// Reading exports: both encodings give the same events, digits stay, an invalid span is rejected
// alone, and no input causes an exception.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  EVENTS_BYTES_MAX,
  type Encoding,
  readExport,
  type ReadExport,
  SPANS_MAX,
} from '../../../api/intake/otlp/events.ts';
import { ITEMS_MAX, VALUE_DEPTH_MAX } from '../../../api/intake/otlp/values.ts';
import { ApiError } from '../../../api/http/errors.ts';
import {
  asJson,
  asProtobuf,
  exportOf,
  field,
  keyValues,
  type OtlpObject,
  otlpSpan,
  spanBytes,
} from '../../support/otlp.ts';

function read(encoding: Encoding, body: Buffer, grow: (bytes: number) => ApiError | null = () => null): ReadExport {
  return readExport(body, {
    signal: 'traces',
    encoding,
    org_id: 'org_a',
    received_at: Date.now(),
    partitions: 4,
    grow,
  });
}

const both = (spans: readonly OtlpObject[], resource: OtlpObject = {}): [ReadExport, ReadExport] => [
  read('json', asJson(exportOf(spans, resource))),
  read('protobuf', asProtobuf(exportOf(spans, resource))),
];
const bodyOf = ({ events }: ReadExport, index = 0): OtlpObject =>
  JSON.parse(events[index]?.event.body ?? '{}') as OtlpObject;
const attributesOf = (out: ReadExport): unknown => (bodyOf(out)['span'] as OtlpObject)['attributes'];

const FULL = otlpSpan(
  1,
  {
    text: 'é💥',
    yes: true,
    no: false,
    int: 7,
    negative: -7,
    big: 9_007_199_254_740_993n,
    least: -(2n ** 63n),
    double: 0.25,
    list: ['a', 1, [true, { x: 'y' }]],
    map: { inner: { deep: 'z' } },
    none: null,
    __proto__x: 1,
  },
  {
    parentSpanId: 'aaaaaaaaaaaaaaaa',
    traceState: 'a=b',
    flags: 257,
    kind: 3,
    droppedAttributesCount: 2,
    events: [
      { timeUnixNano: '1767225600000000001', name: 'exception', attributes: keyValues({ 'exception.message': 'no' }) },
    ],
    links: [{ traceId: 'ff'.repeat(16), spanId: 'ab'.repeat(8), attributes: keyValues({ why: 'batch' }) }],
    status: { code: 2, message: 'it broke' },
  },
);

describe('both encodings', () => {
  it('both encodings give the same event', () => {
    const [json, protobuf] = both([FULL], { 'service.name': 'shop' });
    expect(json.events).toHaveLength(1);
    expect({ ...protobuf.events[0]?.event, received_at: 0 }).toEqual({ ...json.events[0]?.event, received_at: 0 });
    expect(bodyOf(json)).toMatchObject({
      resource: { attributes: { 'service.name': 'shop' } },
      scope: { name: 'test', version: '1' },
      span: { trace_id: '5b8efff798038103d269b633813fc60c', flags: 257, status: { code: 2, message: 'it broke' } },
    });
  });

  it('both encodings give the same event for any attributes', () => {
    const leaf = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.boolean(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.constant(0.5),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    fc.assert(
      fc.property(fc.dictionary(fc.string(), value), (attributes) => {
        const [json, protobuf] = both([
          otlpSpan(1, attributes, { startTimeUnixNano: '1767225600000000000', endTimeUnixNano: '1767225600000000009' }),
        ]);
        expect(protobuf.events.map(({ event }) => event.body)).toEqual(json.events.map(({ event }) => event.body));
      }),
    );
  });

  it('both encodings keep the digits of integers beyond 2^53, as texts', () => {
    const kept = { big: '9007199254740993', least: '-9223372036854775808', int: 7, negative: -7 };
    for (const out of both([FULL])) expect(attributesOf(out)).toMatchObject(kept);
    // JSON may also have them as numbers.
    const raw = asJson(exportOf([FULL]))
      .toString()
      .replaceAll(/"intValue":"(-?\d+)"/g, '"intValue": $1');
    expect(raw).toContain('"intValue": 9007199254740993');
    expect(attributesOf(read('json', Buffer.from(raw)))).toMatchObject(kept);
    const times = raw.replaceAll(/"(startTimeUnixNano|endTimeUnixNano)":"(\d+)"/g, '"$1":$2');
    expect(read('json', Buffer.from(times)).events[0]?.event.event_hex).toBe(
      both([FULL])[0].events[0]?.event.event_hex,
    );
  });

  it('ids are accepted in any case and returned in lower case', () => {
    const upper = otlpSpan(1, {}, { traceId: 'ABCDEF00'.repeat(4), spanId: 'ABCDEF0012345678' });
    const [json, protobuf] = both([upper]);
    expect([json.events[0]?.event.trace_id, protobuf.events[0]?.event.trace_id]).toEqual([
      'abcdef00'.repeat(4),
      'abcdef00'.repeat(4),
    ]);
  });

  it('an empty export is accepted', () => {
    for (const out of [
      read('json', Buffer.from('{}')),
      read('json', asJson([])),
      read('protobuf', Buffer.alloc(0)),
      ...both([]),
    ])
      expect(out).toEqual({ signal: 'traces', events: [], rejected: 0, reasons: [], evaluations: [] });
  });
});

describe('a bad span', () => {
  const nested = (levels: number): OtlpObject => (levels === 0 ? { end: 1 } : { in: nested(levels - 1) });
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`a${index}`, index]));
  it.each([
    ['no trace id', { traceId: '' }, 'traceId'],
    ['a short trace id', { traceId: 'abcd' }, 'traceId'],
    ['a trace id of zeros', { traceId: '0'.repeat(32) }, 'traceId'],
    ['no span id', { spanId: '' }, 'spanId'],
    ['a span id of zeros', { spanId: '0'.repeat(16) }, 'spanId'],
    ['a short parent id', { parentSpanId: 'abcd' }, 'parentSpanId'],
    ['no start', { startTimeUnixNano: '0' }, 'startTimeUnixNano'],
    ['no end', { endTimeUnixNano: '0' }, 'endTimeUnixNano'],
    [
      'a start in the future',
      { startTimeUnixNano: '9999999999999999999', endTimeUnixNano: '9999999999999999999' },
      'startTimeUnixNano',
    ],
    ['a link without ids', { links: [{ traceId: '', spanId: '' }] }, 'links'],
    ['values nested deep', { attributes: keyValues(nested(VALUE_DEPTH_MAX + 2)) }, 'nested'],
    ['10,000 attributes', { attributes: keyValues(many) }, `at most ${ITEMS_MAX}`],
    ['a negative cost', { attributes: keyValues({ cost_usd: -1 }) }, 'cost_usd'],
  ])('an invalid span is rejected alone: %s', (_what, over, reason) => {
    const spans = [otlpSpan(1), otlpSpan(2, {}, over), otlpSpan(3)];
    for (const out of both(spans)) {
      expect([out.events.length, out.rejected]).toEqual([2, 1]);
      expect(out.reasons).toEqual([expect.stringContaining(reason)]);
      expect(out.reasons[0]).toMatch(/^span 1: /);
    }
  });

  it.each([
    ['an id that is no hex', { traceId: 'g'.repeat(32) }],
    ['a negative time', { startTimeUnixNano: '-1' }],
    ['a fraction for an integer', { attributes: [{ key: 'a', value: { intValue: 1.5 } }] }],
    ['an integer beyond 64 bits', { attributes: [{ key: 'a', value: { intValue: '9223372036854775808' } }] }],
    ['attributes that are no list', { attributes: {} }],
    ['a name that is no text', { name: 7 }],
    ['an unknown kind', { kind: 'SPAN_KIND_ODD' }],
  ])('an invalid span is rejected alone in JSON: %s', (_what, over) => {
    const out = read('json', asJson(exportOf([otlpSpan(1), { ...otlpSpan(2), ...over }])));
    expect([out.events.length, out.rejected]).toEqual([1, 1]);
  });

  it.each([1e300, 123_456_789_012_345_680_000])(
    '%d, which OpenTelemetry for JavaScript writes as an integer, is kept',
    (intValue) => {
      const attributes = [{ key: 'a', value: { intValue } }];
      const out = read('json', asJson(exportOf([{ ...otlpSpan(1), attributes }])));
      const kept = expect.stringContaining(`"a":${JSON.stringify(intValue)}`) as unknown;
      expect([out.rejected, out.events[0]?.event.body]).toEqual([0, kept]);
    },
  );

  it('an invalid span is rejected alone in protobuf: values nested deeper than the parser goes', () => {
    // {array_value: {values: […]}} nested to this depth, by hand.
    let value: Buffer = Buffer.from([0x10, 1]);
    for (let level = 0; level < 200; level++) value = field(5, field(1, value));
    const attribute = field(9, Buffer.concat([field(1, Buffer.from('deep')), field(2, value)]));
    const deep = Buffer.concat([spanBytes(otlpSpan(2)), attribute]);
    const out = read('protobuf', asProtobuf(exportOf([otlpSpan(1), deep])));
    expect([out.events.length, out.reasons]).toEqual([1, ['span 1: is nested too deep']]);
  });

  it('an invalid span is rejected alone in protobuf: text that is not UTF-8', () => {
    const odd = Buffer.from(spanBytes(otlpSpan(2, {}, { name: 'aXc' })));
    odd[odd.indexOf('aXc') + 1] = 0xff;
    const out = read('protobuf', asProtobuf(exportOf([otlpSpan(1), odd])));
    expect([out.events.length, out.reasons]).toEqual([1, ['span 1: holds text that is not UTF-8']]);
  });

  it('an odd span is accepted: an end before its start, no name, a parent of zeros', () => {
    const odd = otlpSpan(1, {}, { endTimeUnixNano: '1767225600000000000', name: '', parentSpanId: '0'.repeat(16) });
    for (const out of both([odd])) {
      expect(out).toMatchObject({ rejected: 0 });
      expect(bodyOf(out)['span']).not.toHaveProperty('parent_span_id');
    }
  });
});

describe('a body that is no export', () => {
  it.each([
    ['json', 'nothing', Buffer.alloc(0)],
    ['json', 'no JSON', Buffer.from('{')],
    ['json', 'no object', Buffer.from('[]')],
    ['json', 'no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['json', 'spans elsewhere', Buffer.from('{"resourceSpans": 7}')],
    ['json', 'a resource that is none', Buffer.from('{"resourceSpans": [{"resource": 7}]}')],
    ['json', 'lists without end', Buffer.from('['.repeat(100_000))],
    ['protobuf', 'JSON', asJson(exportOf([FULL]))],
    ['protobuf', 'half of one', asProtobuf(exportOf([FULL])).subarray(0, 100)],
    ['protobuf', 'a span that is none', asProtobuf(exportOf([Buffer.from([0x0a, 0xff, 0xff, 0xff])]))],
  ] as const)('an invalid body is rejected as a whole: %s, %s', (encoding, _what, body) => {
    expect(() => read(encoding, body)).toThrow(expect.objectContaining({ code: 'invalid_request' }) as Error);
  });

  it('a body truncated or changed anywhere is at worst rejected', () => {
    const whole = asProtobuf(exportOf([FULL, otlpSpan(2)], { 'service.name': 'shop' }));
    const cut = fc.nat({ max: whole.length - 1 }).map((length) => whole.subarray(0, length));
    const changed = fc.tuple(fc.nat({ max: whole.length - 1 }), fc.nat({ max: 255 })).map(([at, byte]) => {
      const other = Buffer.from(whole);
      other[at] = byte;
      return other;
    });
    const any = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(cut, changed, any), (body) => {
        try {
          const { events, rejected } = read('protobuf', body);
          expect(events.length + rejected).toBeLessThanOrEqual(64);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request' });
        }
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.json(), (body) => {
        try {
          read('json', Buffer.from(`{"resourceSpans":[{"scopeSpans":[{"spans":[${body}]}]}]}`));
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request' });
        }
      }),
    );
  });
});

describe('the bounds of an export', () => {
  it('an export with more spans than permitted is rejected', () => {
    const spans = Array.from({ length: SPANS_MAX + 1 }, () => Buffer.alloc(0));
    expect(() => read('protobuf', asProtobuf(exportOf(spans)))).toThrow(
      expect.objectContaining({ code: 'payload_too_large' }) as Error,
    );
  });

  it.each([
    ['resources', (empty: Buffer) => empty, 'payload_too_large'],
    ['scopes', (empty: Buffer) => field(1, empty), 'payload_too_large'],
    ['spans', (empty: Buffer) => field(1, field(2, empty)), 'payload_too_large'],
    ['attributes of a resource', (empty: Buffer) => field(1, field(1, empty)), 'invalid_request'],
  ])('a body of empty %s only is rejected', (what, around, code) => {
    const empty = Buffer.alloc(
      500_000,
      Buffer.from([what === 'resources' || what.startsWith('attributes') ? 0x0a : 0x12, 0]),
    );
    expect(() => read('protobuf', around(empty))).toThrow(expect.objectContaining({ code }) as Error);
  });

  it('one span of empty events only is rejected', () => {
    const out = read('protobuf', asProtobuf(exportOf([otlpSpan(1), Buffer.alloc(100_000, Buffer.from([0x5a, 0]))])));
    expect([out.events.length, out.rejected]).toEqual([1, 1]);
  });

  it('a resource that would be repeated beyond the bounds is rejected', () => {
    const spans = Array.from({ length: 40 }, (_, index) => otlpSpan(index));
    let asked = 0;
    const grow = (bytes: number) => {
      asked += bytes;
      return null;
    };
    const body = asProtobuf(exportOf(spans, { blob: 'x'.repeat(1024 * 1024) }));
    expect(() => read('protobuf', body, grow)).toThrow(expect.objectContaining({ code: 'payload_too_large' }) as Error);
    expect(asked).toBeLessThanOrEqual(EVENTS_BYTES_MAX);
  });

  it('the bounds are checked before each event is stored', () => {
    const full = new ApiError('rate_limited', 'full');
    expect(() => read('protobuf', asProtobuf(exportOf([otlpSpan(1)])), () => full)).toThrow(full);
  });
});
