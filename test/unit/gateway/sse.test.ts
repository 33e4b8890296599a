// Streams that are read while they pass: however the bytes are split, the caller gets the same
// bytes and the record is the same.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChatAssembly, isUsageChunk, ResponsesAssembly, TEXT_CHARS_MAX } from '../../../api/intake/gateway/assembly.ts';
import { EVENT_BYTES_MAX, SseStream } from '../../../api/intake/gateway/sse.ts';
import { isFields } from '../../../api/intake/gateway/values.ts';

interface Heard {
  out: string;
  record: unknown;
}

/** Reads a stream in pieces that end at these positions. */
function read(bytes: Buffer, cuts: readonly number[], hides: boolean): Heard {
  const assembly = new ChatAssembly();
  const stream = new SseStream({
    hides,
    onData: (data) => {
      if (isFields(data)) assembly.add(data);
      return hides && isUsageChunk(data);
    },
  });
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const out = places.slice(1).map((end, index) => stream.push(bytes.subarray(places[index], end)));
  return { out: Buffer.concat([...out, stream.end()]).toString('latin1'), record: assembly.response() };
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const delta = fc.oneof(
  text.map((content) => ({ content })),
  fc.record({
    tool_calls: fc.array(fc.record({ index: fc.nat(3), function: fc.record({ arguments: text }) }), { maxLength: 3 }),
  }),
  fc.constant({ role: 'assistant' }),
  fc.record({ refusal: text }),
);
const chunk = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      id: fc.constant('c'),
      choices: fc.array(fc.record({ index: fc.nat(2), delta }), { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }) },
  { weight: 1, arbitrary: fc.jsonValue() },
);
const newline = fc.constantFrom('\n', '\r\n');
const event = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(chunk, newline).map(([data, end]) => `data: ${JSON.stringify(data)}${end}${end}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(text, newline).map(([comment, end]) => `: ${comment.replace(/[\r\n]/g, '')}${end}${end}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'data: [DONE]\n\n',
      '\n',
      'event: x\ndata:{"choices":\ndata:[]}\n\n',
      'data: {"cut',
      'data: 1\n',
    ),
  },
);
const stream = fc.array(event, { maxLength: 12 }).map((events) => Buffer.from(events.join('')));

test('any split of a stream gives the same bytes out and the same record', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(5000), { maxLength: 30 }), fc.boolean(), (bytes, cuts, hides) => {
      const whole = read(bytes, [], hides);
      expect(read(bytes, cuts, hides)).toEqual(whole);
      if (!hides) expect(whole.out).toBe(bytes.toString('latin1'));
    }),
  );
});

test('the output is the input without the events that only report usage', () => {
  const usage = fc.constant('data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n');
  const said = fc
    .tuple(text, fc.constantFrom(null, { prompt_tokens: 1 }))
    .map(
      ([content, used]) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], usage: used })}\n\n`,
    );
  fc.assert(
    fc.property(fc.array(fc.oneof(usage, said), { maxLength: 10 }), fc.array(fc.nat(2000)), (events, cuts) => {
      const bytes = Buffer.from(events.join(''));
      const kept = events.filter((one) => !one.includes('"choices":[]')).join('');
      expect(read(bytes, cuts, true).out).toBe(Buffer.from(kept).toString('latin1'));
    }),
  );
});

test('each event is passed on as soon as it is complete', () => {
  const reading = new SseStream({ hides: true, onData: isUsageChunk });
  expect(reading.push(Buffer.from('data: {"a":1}\n\nda')).toString()).toBe('data: {"a":1}\n\n');
  expect(reading.push(Buffer.from('ta: 2\r\n')).toString()).toBe('');
  expect(reading.push(Buffer.from('\r\n')).toString()).toBe('data: 2\r\n\r\n');
});

test('an event that is too large is passed on unread, and the next one is read again', () => {
  const large = Buffer.from(`data: "${'x'.repeat(EVENT_BYTES_MAX)}"\n\n`);
  const small = Buffer.from('data: 2\n\n');
  for (const cuts of [[], [1000], [EVENT_BYTES_MAX], [1000, EVENT_BYTES_MAX + 9]]) {
    const told: string[] = [];
    const reading = new SseStream({ hides: true, onData: (data) => told.push(String(data).slice(0, 5)) === 0 });
    const places = [0, ...cuts, large.length];
    const out = places.slice(1).map((end, index) => reading.push(large.subarray(places[index], end)));
    expect(Buffer.concat([...out, reading.push(small)]).equals(Buffer.concat([large, small]))).toBe(true);
    expect(told).toEqual(['2']);
  }
});

describe('the record of a stream', () => {
  const chat = (...chunks: Record<string, unknown>[]): ChatAssembly => {
    const assembly = new ChatAssembly();
    for (const one of chunks) assembly.add(one);
    return assembly;
  };

  test("the record of a stream has choices and tool calls in the order of their indexes, with the last chunk's fields", () => {
    const call = (index: number, piece: Record<string, unknown>) => ({
      choices: [{ index: 1, delta: { tool_calls: [{ index, ...piece }] } }],
    });
    const assembly = chat(
      { id: 'c', model: 'm', choices: [{ index: 1, delta: { role: 'assistant' } }] },
      call(1, { id: 'b', function: { name: 'two', arguments: '{' } }),
      call(0, { id: 'a', function: { name: 'one', arguments: '{}' } }),
      call(1, { function: { arguments: '}' } }),
      { choices: [{ index: 0, delta: { content: 'Hi', reasoning_content: 'so' }, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 1 } },
    );
    expect(assembly.response()).toEqual({
      id: 'c',
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi', reasoning_content: 'so' }, finish_reason: 'stop' },
        {
          index: 1,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [
              { type: 'function', id: 'a', function: { name: 'one', arguments: '{}' } },
              { type: 'function', id: 'b', function: { name: 'two', arguments: '{}' } },
            ],
          },
          finish_reason: null,
        },
      ],
      usage: { prompt_tokens: 1 },
    });
  });

  test('the record of a stream is truncated where its texts exceed the bound', () => {
    const half = 'x'.repeat(TEXT_CHARS_MAX / 2 + 1);
    const assembly = chat(
      { choices: [{ index: 0, delta: { content: half } }] },
      { choices: [{ index: 1, delta: { content: half } }] },
    );
    expect(assembly.cut).toBe(true);
    expect(JSON.stringify(assembly.response()).length).toBeLessThan(TEXT_CHARS_MAX + 1000);
  });

  test('the record of an empty stream is null, and an error in the middle is part of it', () => {
    expect(chat().response()).toBeNull();
    expect(chat({ error: { message: 'overloaded' } }).response()).toEqual({ error: { message: 'overloaded' } });
  });

  test('the record of a streamed response is its last event, and before that what has arrived', () => {
    const assembly = new ResponsesAssembly();
    assembly.add({ type: 'response.created', response: { id: 'r', output: [] } });
    assembly.add({ type: 'response.output_text.delta', delta: 'Par' });
    expect(assembly.response()).toEqual({ id: 'r', output: [], output_text: 'Par' });
    assembly.add({ type: 'response.completed', response: { id: 'r', usage: { input_tokens: 1 } } });
    expect(assembly.response()).toEqual({ id: 'r', usage: { input_tokens: 1 } });
    expect(assembly.hasUsage).toBe(true);
  });
});
