// The gateway sends upstream the call's bytes and the listed headers.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bodyFor, checkModelPath, readCall } from '../../../api/intake/gateway/call.ts';
import { answerHeaders, checkQuery, headersFor } from '../../../api/intake/gateway/headers.ts';
import { setMember } from '../../../api/intake/gateway/json_members.ts';
import { labelsOf } from '../../../api/intake/gateway/labels.ts';

const OWN = { model: null };
const OPENAI = { api: 'openai', credential: 'operator' } as const;
const labels = labelsOf({});
const sent = (raw: string, target: { model: string | null } = OWN, operation: 'chat' | 'responses' = 'chat') =>
  bodyFor(readCall(operation, labels, Buffer.from(raw)), target).toString();

describe('a member of an object in its text', () => {
  const spaced = (value: unknown, indent: number) => JSON.stringify(value, null, indent);

  test('a member of a JSON text is set as a parser would see it, and all others stay as they are', () => {
    const object = fc.dictionary(
      fc.oneof(fc.constantFrom('model', 'stream_options', 'a"b\\', ''), fc.string()),
      fc.jsonValue(),
      {
        noNullPrototype: true,
      },
    );
    fc.assert(
      fc.property(
        object,
        fc.constantFrom('model', 'stream_options', 'a"b\\'),
        fc.jsonValue(),
        fc.nat(3),
        (given, name, value, indent) => {
          const text = spaced(given, indent);
          const set = setMember(text, name, JSON.stringify(value));
          expect(JSON.parse(set)).toEqual(JSON.parse(JSON.stringify({ ...given, [name]: value })));
          for (const [key, other] of Object.entries(given))
            if (key !== name) expect(set).toContain(indent === 0 ? JSON.stringify(other) : '');
        },
      ),
    );
  });

  test.each([
    ['{}', '{"k":1}'],
    [' { } ', ' {"k":1 } '],
    ['{"k" : [1, {"k":2}] , "b":"}\\""}', '{"k" : 1 , "b":"}\\""}'],
    ['{"k":0,"\\u006b":2}', '{"k":0,"\\u006b":1}'],
    ['{"b":{"k":2}}', '{"k":1,"b":{"k":2}}'],
    ['{"b":"\\\\","k":-1e5}', '{"b":"\\\\","k":1}'],
  ])('%s', (text, expected) => {
    expect(setMember(text, 'k', '1')).toBe(expected);
  });
});

describe('the body', () => {
  test('the body is passed on as it came, to the byte', () => {
    const raw = '{"model": "m", "messages": [], "seed": 9007199254740993, "x": 1.0, "x": "\\u00e9é"}';
    expect(sent(raw)).toBe(raw);
    const call = readCall('chat', labels, Buffer.from(raw));
    expect(bodyFor(call, OWN)).toBe(call.raw);
  });

  test('the body of a stream requests the usage, and changes nothing else', () => {
    expect(sent('{ "stream":true, "seed":9007199254740993, "t":"é" }')).toBe(
      '{"stream_options":{"include_usage":true}, "stream":true, "seed":9007199254740993, "t":"é" }',
    );
    expect(sent('{"stream":true,"stream_options":{"include_obfuscation":false},"a":1}')).toBe(
      '{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"a":1}',
    );
    expect(sent('{"stream":true,"stream_options":null}')).toBe(
      '{"stream":true,"stream_options":{"include_usage":true}}',
    );
  });

  test.each([
    '{"stream":true,"stream_options":{"include_usage":true}}',
    '{"stream":true,"stream_options":7}',
    '{"stream":false}',
    '{"stream":1}',
  ])('the body of %s is unchanged', (raw) => {
    expect(sent(raw)).toBe(raw);
  });

  test('the body of a streamed response is unchanged, as its usage always arrives', () => {
    expect(sent('{"stream":true}', OWN, 'responses')).toBe('{"stream":true}');
  });

  test('the body names the model that the upstream has', () => {
    expect(sent('{"messages":["é"],"model":"a"}', { model: 'bö' })).toBe('{"messages":["é"],"model":"bö"}');
  });
});

describe('the headers', () => {
  test('the headers are the caller’s without its credential, in any place, and without those of this service and connection', () => {
    const key = 'sk_svc_secret';
    const passed = headersFor(
      {
        authorization: `Bearer ${key}`,
        'x-org-api-key': key,
        'api-key': key,
        'x-copy': `a ${key}`,
        cookie: 'svc_session=a.b.c',
        host: 'here',
        connection: 'keep-alive, X-Hop',
        'x-hop': '1',
        'content-length': '3',
        'content-encoding': 'gzip',
        'accept-encoding': 'gzip',
        'x-service-trace-id': 't',
        'x-org-id': 'o',
        'content-type': 'application/json',
        'openai-organization': 'org',
        'x-stainless-lang': 'js',
        'x-api-key': 'sk-of-the-caller',
        'x-forwarded-for': '10.0.0.1',
        'x-amz-security-token': 't',
        origin: 'https://app.example',
        referer: 'https://app.example/?token=1',
        'idempotency-key': 'k',
        baggage: 'user=ann',
        'x-made-up-tomorrow': '1',
      },
      { ...OPENAI, api_key: 'upstream' },
    );
    expect(passed).toEqual({
      'content-type': 'application/json',
      'openai-organization': 'org',
      'x-stainless-lang': 'js',
      'accept-encoding': 'identity',
      authorization: 'Bearer upstream',
    });
    expect(headersFor({ authorization: `Bearer ${key}` }, { ...OPENAI, api_key: null })).toEqual({
      'accept-encoding': 'identity',
    });
  });

  test('the headers include none with a credential that another header overrides', () => {
    const headers = {
      'x-org-api-key': 'sk_svc_of_the_service',
      authorization: 'Bearer sk-of-the-caller',
      'openai-copy': 'sk-of-the-caller',
      'openai-beta': 'a=b',
    };
    expect(headersFor(headers, { ...OPENAI, api_key: null })).toEqual({
      'openai-beta': 'a=b',
      'accept-encoding': 'identity',
    });
  });

  test('the headers of an answer are those that clients read, and none about cookies, other origins, this hop or the upstream itself', () => {
    const wanted = {
      'Content-Type': 'application/json',
      'Content-Length': '7',
      'OpenAI-Processing-Ms': '12',
      'x-ratelimit-remaining-requests': '9',
      'Retry-After': '3',
      'retry-after-ms': '2500',
      'x-should-retry': 'false',
    };
    const ended = {
      'Set-Cookie': 'a=b',
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': 'X-Request-ID',
      Location: 'https://elsewhere.example/',
      Connection: 'keep-alive, OpenAI-Hop',
      'OpenAI-Hop': '1',
      'Keep-Alive': 'timeout=5',
      'Transfer-Encoding': 'chunked',
      'X-Request-Id': 'req_of_the_upstream',
      'X-Service-Trace-Id': 't',
      'RateLimit-Limit': '5',
      'WWW-Authenticate': 'Bearer',
      'Content-Security-Policy': "default-src 'self'",
      'Strict-Transport-Security': 'max-age=1',
      'Alt-Svc': 'h3=":443"',
      Server: 'cloudflare',
      'X-Made-Up-Tomorrow': '1',
    };
    const raw = Object.entries({ ...wanted, ...ended }).flat();
    expect(answerHeaders(raw, false)).toEqual(Object.entries(wanted).flat());
    expect(answerHeaders(raw, true)).not.toContain('Content-Length');
  });

  test('the headers say whose call it is; an invalid id or one that is too long is rejected by name', () => {
    expect(
      labelsOf({
        'x-service-trace-id': 'trc_1',
        'x-service-parent-span-id': 'spn_1',
        'x-service-agent-id': 'a',
        'x-service-tags': ' a,b , ,c',
      }),
    ).toMatchObject({
      trace_id: 'trc_1',
      parent_span_id: 'spn_1',
      agent_id: 'a',
      user_id: null,
      tags: ['a', 'b', 'c'],
    });
    expect(labelsOf({}).named).toBe(false);
    expect(labelsOf({}).trace_id).toMatch(/^trc_[0-9a-f]{16}$/);
    expect(() => labelsOf({ 'x-service-parent-span-id': 'a/b' })).toThrow(/X-Service-Parent-Span-Id/);
    expect(() => labelsOf({ 'x-service-user-id': 'x'.repeat(513) })).toThrow(/X-Service-User-Id/);
    expect(() => labelsOf({ 'x-service-tags': 'x,'.repeat(65) })).toThrow(/X-Service-Tags/);
  });
});

describe('a traceparent', () => {
  const [trace_id, span_id] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  const traceparent = `00-${trace_id}-${span_id}-01`;

  test('makes the call a child of its span, with hexadecimal ids', () => {
    const labels = labelsOf({ traceparent });
    expect(labels).toMatchObject({ trace_id, parent_span_id: span_id, named: true });
    expect(labels.span_id).toMatch(/^[0-9a-f]{16}$/);
    expect(labelsOf({ traceparent: `cc-${trace_id}-${span_id}-01-more` })).toMatchObject({ trace_id });
  });

  test('gives way to the headers that name a trace or a parent', () => {
    expect(labelsOf({ traceparent, 'x-service-trace-id': 'trc_1' })).toMatchObject({
      trace_id: 'trc_1',
      parent_span_id: null,
    });
    expect(labelsOf({ traceparent, 'x-service-trace-id': trace_id })).toMatchObject({ parent_span_id: span_id });
    expect(labelsOf({ traceparent, 'x-service-parent-span-id': 'spn_1' })).toMatchObject({
      trace_id,
      parent_span_id: 'spn_1',
    });
  });

  test.each([
    `00-${'0'.repeat(32)}-${span_id}-01`,
    `00-${trace_id}-${'0'.repeat(16)}-01`,
    `ff-${trace_id}-${span_id}-01`,
    `00-${trace_id.toUpperCase()}-${span_id}-01`,
    `00-${trace_id}-${span_id}-01-more`,
    `00-${trace_id}-${span_id}`,
    'nonsense',
  ])('that is not valid is ignored: %s', (invalid) => {
    expect(labelsOf({ traceparent: invalid }).trace_id).toMatch(/^trc_/);
  });
});

describe('the model that a path names', () => {
  test.each([
    'gpt-4o',
    'ft:gpt-4o-mini:acme::id',
    'org%2Fmodel',
    'meta-llama%2FLlama-3.1-8B',
    '%40cf%2Fmeta%2Fllama',
    'llama3.1:8b',
    'v..1',
  ])('the model in a path may be %s', (name) => {
    expect(() => {
      checkModelPath(`/models/${name}?a=b`);
    }).not.toThrow();
  });

  test.each([
    '..',
    '%2e%2e',
    '..%2f..%2fadmin',
    '..%2F',
    'a%2F..%2Fb',
    'a%2F%2Fb',
    '%2Fetc',
    'a%5C..%5Cb',
    'a%252Fb',
    'a%3Fb',
    'a%23b',
    'a%00',
    'a%0d%0aX-Y:1',
    'a%20b',
    '%',
    '%ff',
    'x'.repeat(257),
  ])('the model in a path is rejected: %s', (name) => {
    expect(() => {
      checkModelPath(`/models/${name}`);
    }).toThrow(/^model: must be 1 to 256 letters/);
  });
});

test('a query with the caller’s credential is rejected, as it would go upstream', () => {
  const headers = { authorization: 'Bearer sk_svc_secret' };
  for (const path of ['/responses?api_key=sk_svc_secret', '/models?k=sk%5Fsvc_secret', '/models?%zz=sk_svc_secret'])
    expect(() => {
      checkQuery(path, headers);
    }).toThrow(/^query: must not hold a credential/);
  for (const path of ['/responses?api-version=7', '/models'])
    expect(() => {
      checkQuery(path, headers);
    }).not.toThrow();
});
