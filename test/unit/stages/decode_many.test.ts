// Lists as long as a body of 5 MiB can hold them: what was acknowledged is decoded, however many items it has.
import { expect, it } from 'vitest';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import type { SourceFormat } from '../../../schemas/codec.ts';

const BODY_BYTES_MAX = 5 * 1024 * 1024;
const COUNT = 200_000;
const stage = createDecodeStage({
  prices: createPriceBook(() => []),
  maxPromptTokens: () => null,
  redactorOf: () => null,
});

function decoded(format: SourceFormat, event: Record<string, unknown>): Span {
  const body = JSON.stringify(event);
  expect(body.length).toBeLessThan(BODY_BYTES_MAX);
  const place = { partition: 0, log_seq: 1, log_index: 0 };
  const raw = {
    org_id: 'org_a',
    format,
    event_hex: eventHex(body),
    trace_id: 't',
    received_at: Date.parse('2026-02-01T00:00:00.000Z'),
    body,
  };
  const [outcome] = stage.run([{ ...place, ...raw }]);
  if (outcome?.kind !== 'emit' || outcome.out.spans[0] === undefined) throw new Error(JSON.stringify(outcome));
  return outcome.out.spans[0];
}

const many = <T>(item: T): T[] => Array.from({ length: COUNT }, () => item);
const call = { duration_ms: 1, outcome: 'success' };
const request = { model: 'm', messages: [] };
const otlp = (span: Record<string, unknown>): Record<string, unknown> => ({
  resource: { attributes: {} },
  scope: { name: 'test' },
  span: {
    trace_id: '5b8efff798038103d269b633813fc60c',
    span_id: 'eee19b7ec3c1b174',
    name: 'chat m',
    start_time_unix_nano: '1767225600000000000',
    end_time_unix_nano: '1767225600840999999',
    ...span,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm',
      ...(span['attributes'] as object | undefined),
    },
  },
});
const answered = (message: Record<string, unknown>) =>
  otlp({ attributes: { 'gen_ai.output.messages': JSON.stringify([message]) } });
const generation = (message: Record<string, unknown>) => ({
  chain_name: 'c',
  request,
  response: { generations: [[{ text: '', message }]] },
  ...call,
});

it.each<[string, SourceFormat, Record<string, unknown>]>([
  [
    'chatcompletion',
    'chatcompletion',
    { request, response: { choices: [{ message: { content: '', tool_calls: many({}) } }] }, ...call },
  ],
  [
    'messages',
    'messages',
    { request: { ...request, max_tokens: 1 }, response: { content: many({ type: 'tool_use' }) }, ...call },
  ],
  ['chain', 'chain', generation({ tool_calls: many({}) })],
  ['chain, as LangChain serialises it', 'chain', generation({ kwargs: { tool_calls: many({}) } })],
  ['custom', 'custom', { name: 'n', ...call, attributes: { span_kind: 'llm', tool_calls: many({}) } }],
  [
    'app',
    'app',
    { event_type: 'e', session_id: 's', timestamp: '2026-01-31T00:00:00Z', attributes: { tool_calls: many({}) } },
  ],
  ['otlp, in messages', 'otlp', answered({ role: 'assistant', tool_calls: many({}) })],
  ['otlp, in parts of a message', 'otlp', answered({ role: 'assistant', parts: many({ type: 'tool_call' }) })],
  [
    'gateway',
    'gateway',
    {
      operation: 'responses',
      request: { model: 'm', input: '' },
      response: { output: many({ type: 'a_call' }) },
      ...call,
    },
  ],
])('200,000 tool calls of %s land', (_what, format, event) => {
  expect(decoded(format, event).attributes['tool_calls']).toHaveLength(COUNT);
});

it('200,000 messages in an event of an otlp span land', () => {
  const texts = JSON.stringify(many('a'));
  const events = [
    { name: 'gen_ai.content.prompt', attributes: { 'gen_ai.prompt': texts } },
    { name: 'gen_ai.content.completion', attributes: { 'gen_ai.completion': texts } },
  ];
  const span = decoded('otlp', otlp({ events }));
  expect(JSON.parse(span.prompt)).toHaveLength(COUNT);
  expect(span.response).toHaveLength(2 * COUNT - 1);
});
