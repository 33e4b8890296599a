// Decode reads the labels and times that analytics groups and measures by, from every ingest format.
import { expect, it } from 'vitest';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import { DEFAULT_PII_POLICY } from '../../../schemas/records/pii_policy.ts';
import { decoded, ofAttributes } from '../otlp/decoding.ts';
import { decode, decodeOne } from './decoding.ts';

const about = { outcome: 'success', duration_ms: 900 };
const messages = [{ role: 'user', content: 'Hi' }];
const LABELS = {
  environment: 'production',
  service: 'support',
  release: '1.4.0',
  prompt_name: 'greet',
  prompt_version: 'v3',
};
const attributes = { ...LABELS, time_to_first_token_ms: 123.4 };
const EVENTS = {
  chatcompletion: { ...about, request: { model: 'gpt-4o', messages }, response: { choices: [] }, attributes },
  messages: {
    ...about,
    request: { model: 'claude-sonnet-4-5', max_tokens: 9, messages },
    response: { content: [] },
    attributes,
  },
  chain: {
    ...about,
    chain_name: 'support',
    request: { model: 'gpt-4o', messages },
    response: { generations: [[{ text: 'Hi' }]] },
    attributes,
  },
  custom: { ...about, name: 'answer', attributes: { ...attributes, span_kind: 'llm', model: 'gpt-4o' } },
  gateway: {
    ...about,
    operation: 'responses',
    request: { model: 'gpt-4o', input: 'Hi' },
    response: { output: [] },
    attributes,
  },
} as const;

it.each(Object.entries(EVENTS))('reads labels and time to first token of a %s event', (format, event) => {
  const span = decodeOne(format as keyof typeof EVENTS, event);
  expect(span).toMatchObject({ ...LABELS, first_token_ms: 123 });
  expect(span.provider).toBe(format === 'messages' ? 'anthropic' : 'openai');
});

it('reads labels of an app event, which has no provider', () => {
  const span = decodeOne('app', { event_type: 'page', session_id: 's', timestamp: '2026-01-01T00:00:00Z', attributes });
  expect(span).toMatchObject({ ...LABELS, provider: '' });
});

it('gives the steps of a chain the deployment of their chain, and neither its prompt nor its provider', () => {
  const [, step] = decode('chain', { ...EVENTS.chain, intermediate_steps: [['search(x)', 'found']] });
  expect(step).toMatchObject({
    environment: 'production',
    service: 'support',
    release: '1.4.0',
    prompt_name: '',
    prompt_version: '',
    provider: '',
    first_token_ms: 0,
  });
});

it('reads service, version and environment from the resource of an OTLP span, unless the span has its own', () => {
  const resource = { 'service.name': 'shop', 'service.version': '2.0', 'deployment.environment.name': 'staging' };
  expect(decoded({}, resource)).toMatchObject({ environment: 'staging', service: 'shop', release: '2.0' });
  expect(decoded({ attributes: { 'deployment.environment': 'canary' } }, resource).environment).toBe('canary');
});

it.each([
  [{ 'gen_ai.provider.name': 'aws.bedrock' }, 'aws'],
  [{ 'gen_ai.system': 'gcp.vertex_ai' }, 'google'],
  [{ 'gen_ai.system': 'OpenAI' }, 'openai'],
  [{}, 'anthropic'],
])('names the provider of an OTLP model call with %j: %s', (named, provider) => {
  const call = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'claude-sonnet-4-5' };
  expect(ofAttributes({ ...call, ...named }).provider).toBe(provider);
});

it.each([
  [{ 'ai.response.msToFirstChunk': 41.6 }, 42],
  [{ 'gen_ai.response.time_to_first_chunk': 0.25 }, 250],
  [{ completion_start_time: '2026-01-01T00:00:00.100Z' }, 100],
  [{ 'langfuse.observation.completion_start_time': '"2026-01-01T00:00:00.200Z"' }, 200],
  [{ 'mastra.completion_start_time': '2026-01-01T00:00:00.300Z' }, 300],
  [{ completion_start_time: '2025-12-31T23:59:59.000Z' }, 0],
  [{ time_to_first_token_ms: -5 }, 0],
  [{ time_to_first_token_ms: 1e12 }, 0],
  [{ time_to_first_token_ms: 'soon' }, 0],
])('reads the time to the first token of an OTLP span with %j: %i ms', (given, ms) => {
  expect(ofAttributes(given).first_token_ms).toBe(ms);
});

it('reads the time to the first token from the event of an OTLP span', () => {
  const events = [{ time_unix_nano: '1767225600300000000', name: 'First Token Stream Event', attributes: {} }];
  expect(decoded({ events }).first_token_ms).toBe(300);
});

it.each([
  [
    'chatcompletion',
    {
      ...EVENTS.chatcompletion,
      response: {
        choices: [],
        usage: { prompt_tokens: 10, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 7 } },
      },
    },
    { reasoning_tokens: 7, cache_write_tokens: 0 },
  ],
  [
    'gateway',
    {
      ...EVENTS.gateway,
      response: { usage: { input_tokens: 10, output_tokens: 9, output_tokens_details: { reasoning_tokens: 12 } } },
    },
    { reasoning_tokens: 9, cache_write_tokens: 0 },
  ],
  [
    'messages',
    {
      ...EVENTS.messages,
      response: {
        content: [],
        usage: {
          input_tokens: 10,
          output_tokens: 9,
          cache_read_input_tokens: 5,
          cache_creation_input_tokens: 20,
          cache_creation: { ephemeral_1h_input_tokens: 8 },
        },
      },
    },
    { reasoning_tokens: 0, cache_write_tokens: 20, cached_input_tokens: 5, input_tokens: 35 },
  ],
  [
    'custom',
    {
      ...about,
      name: 'answer',
      attributes: {
        span_kind: 'llm',
        model: 'gpt-4o',
        input_tokens: 10,
        output_tokens: 9,
        cache_write_tokens: 4,
        reasoning_tokens: 3,
      },
    },
    { reasoning_tokens: 3, cache_write_tokens: 4 },
  ],
] as const)('counts cache writes and reasoning of a %s event as parts of input and output', (format, event, counts) => {
  expect(decodeOne(format, event)).toMatchObject(counts);
});

it('counts cache writes and reasoning of an OTLP model call', () => {
  const call = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'gpt-4o',
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 50,
    'gen_ai.usage.cache_creation.input_tokens': 30,
    'gen_ai.usage.reasoning.output_tokens': 40,
  };
  expect(ofAttributes(call)).toMatchObject({ cache_write_tokens: 30, reasoning_tokens: 40 });
});

it('redacts personal data from labels', () => {
  const redactor = new PiiRedactor({ ...DEFAULT_PII_POLICY, hash_key: null });
  const redacting = createDecodeStage({
    prices: createPriceBook(() => []),
    maxPromptTokens: () => null,
    redactorOf: () => redactor,
  });
  const event = { ...EVENTS.custom, attributes: { ...EVENTS.custom.attributes, service: 'bot of ann@example.com' } };
  expect(decodeOne('custom', event, redacting).service).not.toContain('ann@example.com');
});
