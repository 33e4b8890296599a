// What real instrumentations sent, recorded with a model server that answers with known usage
// (test/data/recorded_instrumentations.json names their versions): the decoder finds texts, tokens and
// cost, to the cent.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { decoded, type Fields, QUESTION, used } from './decoding.ts';
import { logSpan } from './log_records.ts';

interface Recorded {
  version: string;
  with: string;
  spans: { name: string; kind: number; scope: string; attributes: Fields }[];
  logs?: Fields[];
}
const RECORDED = JSON.parse(
  readFileSync(new URL('../../data/recorded_instrumentations.json', import.meta.url), 'utf8'),
) as Record<string, Recorded>;

/** A time before that at which the records are decoded. */
const AT = '1795470102338000000';

const spansOf = (library: string): Span[] =>
  (RECORDED[library]?.spans ?? []).map(({ scope, ...span }) => decoded(span, {}, scope));

/** 25 uncached input tokens at 3 USD for a million, 1000 cached at 0.30, 200 written at 3.75, 40 out at 15. */
const ANTHROPIC_COST = 25n * 3_000_000n + 1000n * 300_000n + 200n * 3_750_000n + 40n * 15_000_000n;

test.each([['@arizeai/openinference-instrumentation-anthropic'], ['@traceloop/instrumentation-anthropic']])(
  '%s: cached and written tokens are in the input and priced apart, in answers, tool calls and streams',
  (library) => {
    const spans = spansOf(library);
    expect(spans).toHaveLength(3);
    for (const span of spans) {
      expect(used(span)).toEqual(['llm', 'claude-sonnet-4-5', 1225, 40, 1000]);
      expect([span.cache_write_tokens, span.cost_pico_usd]).toEqual([200, ANTHROPIC_COST]);
      expect(span.prompt).toContain('What is the capital of France?');
    }
    expect(spans.map(({ response }) => response)).toEqual(['Paris.', '', 'Paris.']);
    expect(JSON.stringify(spans[1]?.attributes['tool_calls'])).toContain('weather');
  },
);

test('@traceloop/instrumentation-anthropic: cached tokens count beside an uncached input that is larger', () => {
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.usage.input_tokens': 5000,
    'gen_ai.usage.output_tokens': 1,
    'gen_ai.usage.cache_read.input_tokens': 1000,
  };
  const [own, other] = ['@traceloop/instrumentation-anthropic', 'another'].map((scope) =>
    decoded({ attributes }, {}, scope),
  );
  expect([own?.input_tokens, other?.input_tokens]).toEqual([6000, 5000]);
});

test('@arizeai/openinference-instrumentation-langchain: a retriever, and a chain with one call and the session', () => {
  const spans = spansOf('@arizeai/openinference-instrumentation-langchain');
  expect(spans.map(({ kind, name }) => [kind, name])).toEqual([
    ['event', 'R'],
    ['event', 'ChatPromptTemplate'],
    ['llm', 'ChatOpenAI'],
    ['event', 'StrOutputParser'],
    ['event', 'RunnableSequence'],
  ]);
  const [retriever, , call] = spans;
  expect(retriever?.prompt).toBe('capital of France');
  expect(JSON.parse(retriever?.response ?? '')).toMatchObject([
    { content: 'Paris is the capital.' },
    { content: 'Lyon is not.' },
  ]);
  expect(call === undefined ? [] : used(call)).toEqual(['llm', 'gpt-4o-mini', 100, 20, 40]);
  expect(spans.slice(1).map(({ session_id }) => session_id)).toEqual(Array(4).fill('thread-1'));
  // 60 at 0.15 USD for a million, 40 from the cache at 0.075, 20 out at 0.60; nothing else costs.
  expect(spans.reduce((sum, { cost_pico_usd }) => sum + cost_pico_usd, 0n)).toBe(24_000_000n);
});

test('@opentelemetry/instrumentation-openai: spans have the usage, log records the messages', () => {
  const [answer, tool, embedding] = spansOf('@opentelemetry/instrumentation-openai');
  expect([answer, tool].map((span) => span && used(span))).toEqual([
    ['llm', 'gpt-4o-mini', 100, 20, 0],
    ['llm', 'gpt-4o-mini', 100, 20, 0],
  ]);
  expect(embedding).toMatchObject({ kind: 'llm', model: 'text-embedding-3-small' });
  const logs = (RECORDED['@opentelemetry/instrumentation-openai']?.logs ?? []).map((log) =>
    logSpan({ ...log, time_unix_nano: AT }),
  );
  expect(logs.map((log) => (typeof log === 'string' ? log : [log.record, log.prompt, log.response]))).toEqual([
    ['message', JSON.stringify([QUESTION[0]]), ''],
    ['message', JSON.stringify([QUESTION[1]]), ''],
    ['message', '', 'Paris.'],
    ['message', JSON.stringify([QUESTION[0]]), ''],
    ['message', JSON.stringify([QUESTION[1]]), ''],
    ['message', '', ''],
  ]);
});
