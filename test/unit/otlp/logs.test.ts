// Log records of any sender: their place, their texts, and why some are rejected.
import { describe, expect, test } from 'vitest';
import { logSpan } from './log_records.ts';

const AT = { time_unix_nano: '1795470102338000000' };
const IDS = { trace_id: '5b8efff798038103d269b633813fc60c', span_id: 'eee19b7ec3c1b174' };

describe('the place of a record', () => {
  test('a record with ids is an event below its span', () => {
    expect(logSpan({ ...IDS, ...AT, body: 'It rains.' })).toMatchObject({
      trace_id: IDS.trace_id,
      parent_span_id: IDS.span_id,
      kind: 'event',
      name: 'log',
      response: 'It rains.',
      source_format: 'otlp',
      started_at: 1795470102338,
      ended_at: 1795470102338,
    });
  });

  test('a record with a trace alone is one of its roots', () => {
    expect(logSpan({ trace_id: IDS.trace_id, ...AT })).toMatchObject({ parent_span_id: '' });
  });

  test('a record without a trace belongs to its session', () => {
    const session = '77c2742f-d416-48ad-9632-dce4179aa3b2';
    expect(logSpan({ ...AT, attributes: { 'session.id': session } })).toMatchObject({ trace_id: session });
    expect(logSpan(AT, { 'session.id': 'a session with spaces' })).toMatchObject({
      trace_id: expect.stringMatching(/^trc_[0-9a-f]{16}$/) as unknown,
      session_id: 'a session with spaces',
    });
  });

  test.each([
    [{ ...AT, body: 'x' }, 'traceId: is needed'],
    [{ ...AT, trace_id: 'ab' }, 'traceId: must be 16 bytes'],
    [{ ...IDS, ...AT, span_id: 'ab' }, 'spanId: must be 8 bytes'],
    [{ ...IDS, time_unix_nano: '9995470102338000000' }, 'timeUnixNano: lies more than 5 minutes'],
    [{ ...IDS, ...AT, attributes: { cost_usd: -1 } }, 'attributes.cost_usd: must be an amount'],
  ])('%o is rejected', (log, why) => {
    expect(logSpan(log)).toContain(why);
  });

  test('the time is that of the event, else that of its observation, else that of its receipt', () => {
    expect(logSpan({ ...IDS, observed_time_unix_nano: '1795470102338000000' })).toMatchObject({
      ended_at: 1795470102338,
    });
    expect(logSpan(IDS)).toMatchObject({ ended_at: Date.parse('2026-11-23T22:00:00.000Z') });
  });
});

describe('messages', () => {
  test.each(['system', 'user', 'assistant', 'tool'])('gen_ai.%s.message becomes the prompt', (role) => {
    const span = logSpan({ ...IDS, ...AT, event_name: `gen_ai.${role}.message`, body: { content: 'Hello.' } });
    expect(span).toMatchObject({
      prompt: JSON.stringify([{ role, content: 'Hello.' }]),
      response: '',
      record: 'message',
    });
  });

  test('gen_ai.choice becomes the response, with its tool calls', () => {
    const tool_calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const body = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi.', tool_calls } };
    expect(logSpan({ ...IDS, ...AT, attributes: { 'event.name': 'gen_ai.choice' }, body })).toMatchObject({
      prompt: '',
      response: 'Hi.',
      attributes: { tool_calls, 'gen_ai.response.finish_reasons': ['stop'] },
    });
  });

  test('the details of an operation become both, wherever they are', () => {
    const messages = {
      'gen_ai.system_instructions': [{ type: 'text', content: 'Be brief.' }],
      'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'Hello.' }] }],
      'gen_ai.output.messages': [
        { role: 'assistant', parts: [{ type: 'text', content: 'Hi.' }], finish_reason: 'stop' },
      ],
    };
    const event_name = 'gen_ai.client.inference.operation.details';
    for (const where of ['attributes', 'body'])
      expect(logSpan({ ...IDS, ...AT, event_name, [where]: messages })).toMatchObject({
        prompt: JSON.stringify([
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hello.' },
        ]),
        response: 'Hi.',
        input_tokens: 0,
      });
  });

  test('usage beside messages is not counted, since the span has it', () => {
    const span = logSpan({
      ...IDS,
      ...AT,
      event_name: 'gen_ai.client.inference.operation.details',
      attributes: { 'gen_ai.usage.input_tokens': 100, 'gen_ai.request.model': 'gpt-4o-mini', cost_usd: 1 },
    });
    expect(span).toMatchObject({ kind: 'event', input_tokens: 0, cost_pico_usd: 0n });
  });
});
