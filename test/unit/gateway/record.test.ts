// The record of a call: the pipeline can decode it whatever was sent and answered; and the
// reservation before the call.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { usesOf } from '../../../api/admission/budget/uses.ts';
import { AnswerReader } from '../../../api/intake/gateway/answer.ts';
import { type Operation, readCall } from '../../../api/intake/gateway/call.ts';
import { labelsOf } from '../../../api/intake/gateway/labels.ts';
import { type EndedCall, recordOf } from '../../../api/intake/gateway/record.ts';
import { Recorder } from '../../../api/intake/gateway/recorder.ts';
import { ANSWER_TOKENS, Estimates } from '../../../api/intake/gateway/reserve.ts';
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { eventually } from '../../support/wait.ts';

const deps = { prices: createPriceBook(() => []), maxPromptTokens: () => null, redactorOf: () => null };
const AT = Date.UTC(2026, 5, 1);
const labels = { ...labelsOf({}), trace_id: 'trc_1', span_id: 'spn_1' };

const ended = (fields: Partial<EndedCall> = {}): EndedCall => ({
  org_id: 'org_a',
  operation: 'chat',
  labels,
  request: { model: 'gpt-4o-mini', messages: [] },
  response: { choices: [] },
  outcome: 'success',
  started_at: AT - 5,
  ended_at: AT,
  attributes: { http_status: 200 },
  ...fields,
});

function spanOf(call: EndedCall) {
  const { event } = recordOf(call, 4);
  const spans = spansOf(deps, event, JSON.parse(event.body));
  if (typeof spans === 'string') throw new Error(spans);
  if (spans[0] === undefined) throw new Error('no span');
  return spans[0];
}

test('the parsed body of a record uses what its text uses, whatever was sent and answered', () => {
  const count = fc.option(fc.integer({ min: -1, max: 1e6 }), { nil: undefined });
  const usage = fc.record({
    prompt_tokens: count,
    completion_tokens: count,
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: count,
    prompt_tokens_details: fc.option(fc.record({ cached_tokens: count }), { nil: undefined }),
  });
  const request = fc.record({
    model: fc.option(fc.constantFrom('gpt-4o-mini', 'claude-sonnet-4-5', ''), { nil: undefined }),
    messages: fc.option(fc.array(fc.record({ role: fc.string(), content: fc.jsonValue() })), { nil: undefined }),
    extra: fc.jsonValue(),
  });
  const response = fc.record({
    model: fc.option(fc.string(), { nil: undefined }),
    choices: fc.option(fc.array(fc.record({ message: fc.record({ content: fc.string() }) })), { nil: undefined }),
    content: fc.option(fc.array(fc.record({ type: fc.constant('text'), text: fc.string() })), { nil: undefined }),
    usage: fc.option(usage, { nil: undefined }),
  });
  const operations = fc.constantFrom<Operation>('chat', 'messages', 'responses', 'embeddings');
  fc.assert(
    fc.property(operations, request, fc.option(response), (operation, sent, answered) => {
      const { parsed, ...plain } = recordOf(ended({ operation, request: sent, response: answered }), 4);
      expect(parsed).toBeDefined();
      expect(usesOf(deps.prices, [{ ...plain, parsed }])).toEqual(usesOf(deps.prices, [plain]));
    }),
  );
});

test('every request and answer becomes a span of its trace with its usage', () => {
  const operation = fc.constantFrom<Operation>('chat', 'responses', 'embeddings');
  const object = fc.dictionary(
    fc.constantFrom('model', 'messages', 'input', 'choices', 'usage', 'output', 'error', 'x'),
    fc.jsonValue(),
    {
      noNullPrototype: true,
    },
  );
  const outcome = fc.constantFrom('success' as const, 'error' as const, 'timeout' as const);
  fc.assert(
    fc.property(operation, object, fc.option(object), outcome, (one, request, response, how) => {
      const span = spanOf(ended({ operation: one, request, response, outcome: how }));
      expect(span).toMatchObject({
        trace_id: 'trc_1',
        span_id: 'spn_1',
        outcome: how,
        kind: 'llm',
        started_at: AT - 5,
        ended_at: AT,
      });
    }),
  );
});

test('a request that is not a chat completion is recorded as text, with its usage', () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, details: { a: -1 } };
  const span = spanOf(ended({ request: { model: 'm', messages: 'no list' }, response: { choices: [], usage } }));
  expect(span).toMatchObject({ name: 'm', input_tokens: 3, output_tokens: 4, source_format: 'chatcompletion' });
  expect(JSON.parse(span.prompt)).toEqual([{ role: 'user', content: '{"model":"m","messages":"no list"}' }]);
  expect(JSON.stringify(span.attributes)).not.toContain('no list');
});

test('an answer that is not a chat completion is recorded as text, beside the request as it was', () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  const chat = spanOf(ended({ request: { model: 'm', messages }, response: { choices: 'a word' } }));
  expect([chat.prompt, chat.response]).toEqual([JSON.stringify(messages), '{"choices":"a word"}']);
  const other = spanOf(ended({ operation: 'responses', request: { model: 'm', input: 'Hi' }, response: ['a word'] }));
  expect([other.prompt, other.response]).toEqual(['Hi', '["a word"]']);
  for (const span of [chat, other]) {
    expect(JSON.stringify(span.attributes)).not.toContain('a word');
    expect(span.attributes['tokens_estimated']).toBe(true);
  }
});

test.each(['chat', 'responses', 'embeddings'] as const)(
  'usage that a failed call of %s does not report is not estimated from its texts',
  (operation) => {
    const call = { operation, request: { model: 7, messages: 'no list' }, outcome: 'error' as const };
    const said = spanOf(ended({ ...call, response: ['refused'] }));
    expect(said).toMatchObject({
      name: 'unknown',
      response: '["refused"]',
      input_tokens: 0,
      output_tokens: 0,
      cost_pico_usd: 0n,
    });
    expect(said.prompt).toContain('no list');
    expect(said.attributes).not.toHaveProperty('tokens_estimated');
    expect(spanOf(ended({ ...call, response: null }))).toMatchObject({
      response: '',
      input_tokens: 0,
      output_tokens: 0,
    });
    const usage = { prompt_tokens: 3, input_tokens: 3, x: -1 };
    expect(spanOf(ended({ ...call, response: { choices: 'x', output: 1, usage } })).input_tokens).toBe(3);
  },
);

test('a body nested too deep or too large for a message is recorded without it', () => {
  let deep: unknown = 1;
  for (let i = 0; i < 20_000; i++) deep = [deep];
  const large = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(MESSAGE_BYTES_MAX) }] };
  for (const request of [{ model: 'm', messages: [], deep }, large]) {
    const { event } = recordOf(ended({ request }), 4);
    expect(Buffer.byteLength(event.body)).toBeLessThan(MESSAGE_BYTES_MAX / 2);
    expect(spanOf(ended({ request }))).toMatchObject({ name: 'm', outcome: 'success' });
  }
});

test('a response’s output, refusals and tool calls are read; embeddings have no output tokens', () => {
  const output = [
    { type: 'reasoning', summary: [] },
    { type: 'function_call', name: 'weather', arguments: '{}' },
    { type: 'message', content: [{ type: 'output_text', text: 'Hello' }] },
    { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] },
  ];
  const request = { model: 'm', instructions: 'Be brief.', input: [{ role: 'user', content: 'Hi' }] };
  const span = spanOf(ended({ operation: 'responses', request, response: { output } }));
  expect(span.response).toBe('Hello\nNo.');
  expect(JSON.parse(span.prompt)).toEqual([{ role: 'system', content: 'Be brief.' }, ...request.input]);
  expect(span.attributes).toMatchObject({
    tool_calls: [output[1]],
    tokens_estimated: true,
    'gen_ai.operation.name': 'responses',
  });
  const vectors = { embeddings: 1, usage: { prompt_tokens: 5 } };
  expect(
    spanOf(ended({ operation: 'embeddings', request: { model: 'm', input: 'Hi' }, response: vectors })),
  ).toMatchObject({
    input_tokens: 5,
    output_tokens: 0,
    prompt: 'Hi',
  });
});

describe('the answer that is recorded', () => {
  const call = readCall('chat', labels, Buffer.from('{"model":"m"}'));
  const read = (
    status: number,
    text: string,
    ending: 'complete' | 'lost' | 'timeout' | 'gone' = 'complete',
    head: { isStream?: boolean; isHtml?: boolean; isPlain?: boolean } = {},
  ) => {
    const reader = new AnswerReader(call, { status, isStream: false, isPlain: true, isHtml: false, ...head }, () => 0);
    if (text !== '') reader.take(Buffer.from(text));
    return reader.read(ending);
  };

  test.each([
    ['an answer', 200, '{"choices":[]}', 'complete', 'success', { choices: [] }],
    ['text that is no JSON', 200, '<html>', 'complete', 'error', null],
    ['JSON that is no object', 200, '[1]', 'complete', 'error', null],
    ['nothing', 200, '', 'complete', 'error', null],
    ['a redirect', 302, '', 'complete', 'error', null],
    ['a redirect with a body that looks like an answer', 307, '{"choices":[]}', 'complete', 'error', { choices: [] }],
    ['a refusal', 400, '{"error":{"message":"no"}}', 'complete', 'error', { error: { message: 'no' } }],
    ['an HTML error', 502, '<html>', 'complete', 'error', null],
    ['a gateway timeout', 504, '', 'complete', 'timeout', null],
    ['a broken connection', 200, '{"cho', 'lost', 'error', null],
    ['silence', 200, '', 'timeout', 'timeout', null],
    ['a caller that went away', 200, '', 'gone', 'error', { choices: [] }],
  ] as const)('the recorded answer of %s', (_, status, text, ending, outcome, response) => {
    const recorded = read(status, text, ending);
    expect(recorded).toMatchObject({ outcome, response });
    if (outcome === 'success') expect(recorded.attributes).not.toHaveProperty('error_message');
    else expect(recorded.attributes['error_message']).toEqual(expect.stringMatching(/\S/));
  });

  test('a page of HTML and a stream without an event are errors, and an answer that only the caller can read is a success', () => {
    expect(read(200, '{"choices":[]}', 'complete', { isHtml: true })).toMatchObject({ outcome: 'error' });
    const stream = read(200, 'no event\n\n', 'complete', { isStream: true });
    expect([stream.outcome, stream.attributes['error_message']]).toEqual([
      'error',
      expect.stringContaining('other than a JSON object'),
    ]);
    expect(read(200, 'compressed', 'complete', { isPlain: false })).toMatchObject({
      outcome: 'success',
      response: { choices: [] },
    });
  });

  test("at most 48 MiB of one organization's answers are kept, and those of another have room", () => {
    const head = { status: 200, isStream: false, isPlain: true, isHtml: false };
    const piece = Buffer.alloc(7 * 1024 * 1024, '1');
    const readers = Array.from({ length: 7 }, () => new AnswerReader(call, head, () => 0, 'org_large'));
    for (const reader of readers) reader.take(piece);
    const other = new AnswerReader(call, head, () => 0, 'org_small');
    other.take(Buffer.from('{"choices":[]}'));
    expect(other.read('complete')).toMatchObject({ outcome: 'success', response: { choices: [] } });
    const truncated = readers.map((reader) => reader.read('lost').attributes['answer_truncated'] === true);
    expect(truncated).toEqual([false, false, false, false, false, false, true]);
    const again = new AnswerReader(call, head, () => 0, 'org_large');
    again.take(piece);
    expect(again.read('lost').attributes).not.toHaveProperty('answer_truncated');
  });

  test('the text of a stream counts in the share of its organization', () => {
    const head = { status: 200, isStream: true, isPlain: true, isHtml: false };
    const event = Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(1024 * 1024) } }] })}\n\n`,
    );
    const readers = Array.from({ length: 25 }, () => new AnswerReader(call, head, () => 0, 'org_streams'));
    for (const reader of readers) reader.take(event);
    const truncated = readers.map((reader) => reader.read('complete').attributes['answer_truncated'] === true);
    expect(truncated.lastIndexOf(false)).toBe(23);
    expect(truncated[24]).toBe(true);
  });
});

describe('what a call reserves', () => {
  const usageOf = (body: Record<string, unknown>, estimates = new Estimates(), operation: Operation = 'chat') => {
    const call = readCall(operation, labels, Buffer.from(JSON.stringify({ model: 'm', ...body })));
    const estimate = estimates.of('org_a', call, AT, 4);
    const { input_tokens: prompt_tokens, output_tokens: completion_tokens } = estimate.call;
    return { call, estimate, prompt_tokens, completion_tokens };
  };

  test('a call reserves its prompt and the most that its answer may have', () => {
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hello '.repeat(100) },
          { type: 'image_url', image_url: { url: 'x'.repeat(9000) } },
        ],
      },
    ];
    const { prompt_tokens, completion_tokens } = usageOf({ messages, max_tokens: 50, n: 3 });
    expect(prompt_tokens).toBeGreaterThan(95);
    expect(prompt_tokens).toBeLessThan(120);
    expect(completion_tokens).toBe(150);
    expect(usageOf({ messages }).completion_tokens).toBe(ANSWER_TOKENS);
    expect(usageOf({ messages, max_completion_tokens: 7 }).completion_tokens).toBe(7);
    expect(usageOf({ input: 'hi' }, new Estimates(), 'embeddings').completion_tokens).toBe(0);
    expect(usageOf({ input: 'hi', max_output_tokens: 9 }, new Estimates(), 'responses').completion_tokens).toBe(9);
  });

  test("the reservation adapts to how the text's estimate differs from the vendor's count, and forgets that again", () => {
    const estimates = new Estimates();
    const body = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 1 };
    const first = usageOf(body, estimates);
    estimates.learn('org_a', first.call, first.estimate, { usage: { prompt_tokens: first.prompt_tokens * 20 } });
    expect(usageOf(body, estimates).prompt_tokens).toBe(first.prompt_tokens * 20);
    for (let i = 0; i < 100; i++) estimates.learn('org_a', first.call, first.estimate, { usage: { prompt_tokens: 1 } });
    expect(usageOf(body, estimates).prompt_tokens).toBe(first.prompt_tokens);
  });
});

describe('records behind the callers’ backs', () => {
  const record = recordOf(ended(), 4);
  const positions = new Map([[0, 7]]);

  test('records are retried until the log has them', async () => {
    let fails = 2;
    const confirmed: unknown[] = [];
    const lost: string[] = [];
    const publish = () => (fails-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve(positions));
    const recorder = new Recorder({
      publish,
      disk: { low: false },
      now: () => performance.now(),
      onLost: (reason) => lost.push(reason),
    });
    recorder.add(record, { confirm: (where) => confirmed.push(where), cancel: () => lost.push('cancelled') });
    await eventually(() => recorder.waiting === 0, { what: 'an empty recorder' });
    expect([confirmed, lost]).toEqual([[positions], []]);
  });

  test('records are published together, and each by itself after they were rejected', async () => {
    const sent: number[] = [];
    const confirmed: unknown[] = [];
    const publish = (events: readonly unknown[]) => {
      sent.push(events.length);
      return events.length > 1 ? Promise.reject(new Error('one of them')) : Promise.resolve(positions);
    };
    const recorder = new Recorder({
      publish,
      disk: { low: false },
      now: () => performance.now(),
      onLost: () => undefined,
    });
    const hold = { confirm: (where: unknown) => confirmed.push(where), cancel: () => undefined };
    for (let i = 0; i < 3; i++) recorder.add(record, hold);
    await eventually(() => recorder.waiting === 0, { what: 'an empty recorder' });
    expect([sent, confirmed]).toEqual([
      [3, 1, 1, 1],
      [positions, positions, positions],
    ]);
    for (let i = 0; i < 2; i++) recorder.add({ ...record, bytes: 1024 * 1024 }, null);
    expect(sent.slice(4)).toEqual([1, 1]);
  });

  test('records without room are counted as lost and release their budget', () => {
    const told: string[] = [];
    const recorder = new Recorder({
      publish: () => new Promise(() => undefined),
      disk: { low: false },
      now: () => 0,
      onLost: (reason) => told.push(reason),
    });
    const large = { ...record, bytes: 40 * 1024 * 1024 };
    recorder.add(large, null);
    recorder.add(large, { confirm: () => told.push('confirmed'), cancel: () => told.push('cancelled') });
    expect(told).toEqual(['cancelled', 'no_room']);
    expect(recorder.waiting).toBe(1);
  });

  test('records are flushed at shutdown, and given up when nothing is accepted', async () => {
    const lost: string[] = [];
    let now = 0;
    const recorder = new Recorder({
      publish: () => Promise.reject(new Error('away')),
      disk: { low: false },
      now: () => (now += 50),
      onLost: (reason) => lost.push(reason),
    });
    recorder.add(record, null);
    await recorder.flush();
    expect([lost, recorder.waiting]).toEqual([['given_up'], 0]);
  });

  test.each([
    ['stored', () => Promise.resolve(positions)],
    ['rejected', () => Promise.reject(new Error('away'))],
  ])('a record that is %s after it was given up at shutdown stays given up', async (_, outcome) => {
    const told: string[] = [];
    let now = 0;
    let tries = 0;
    const answer = Promise.withResolvers<null>();
    const recorder = new Recorder({
      publish: () => {
        tries++;
        return answer.promise.then(outcome);
      },
      disk: { low: false },
      now: () => (now += 500),
      onLost: (reason) => told.push(reason),
    });
    recorder.add(record, { confirm: () => told.push('confirmed'), cancel: () => told.push('cancelled') });
    await recorder.flush();
    answer.resolve(null);
    await new Promise(setImmediate);
    expect([told, recorder.waiting, tries]).toEqual([['cancelled', 'given_up'], 0, 1]);
  });
});
