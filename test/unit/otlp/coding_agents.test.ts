// Log records of real coding agents: which trace and span they become, with usage, cost, texts and
// owners.
import { describe, expect, test } from 'vitest';
import { decoded, used } from './decoding.ts';
import { AGENTS, logSpan, spansOfAgent } from './log_records.ts';

/** A time before that at which spans are decoded. */
const AT = { start_time_unix_nano: '1767225600000000000', end_time_unix_nano: '1767225600840999999' };

const rows = (name: string) =>
  spansOfAgent(name).map(({ kind, name: own, model, input_tokens, output_tokens }) => [
    kind,
    own,
    model,
    input_tokens,
    output_tokens,
  ]);

describe('Claude Code', () => {
  const spans = spansOfAgent('claude_code');
  const [prompt] = spans;

  test('a prompt is one trace: its model calls, tools and answer stand below the prompt', () => {
    expect(rows('claude_code')).toEqual([
      ['event', 'claude_code.user_prompt', '', 0, 0],
      ['event', 'claude_code.tool_decision', '', 0, 0],
      ['llm', 'claude_code.api_request', 'claude-sonnet-4-5', 1225, 40],
      ['tool', 'Bash', '', 0, 0],
      ['llm', 'claude_code.api_request', 'claude-sonnet-4-5', 1225, 7],
      ['event', 'claude_code.assistant_response', '', 0, 0],
    ]);
    const { attributes, trace_id, span_id, parent_span_id } = prompt ?? {};
    expect([trace_id, parent_span_id]).toEqual([attributes?.['prompt.id'], '']);
    expect(new Set(spans.slice(1).map((span) => span.parent_span_id))).toEqual(new Set([span_id]));
    expect(new Set(spans.map((span) => span.trace_id))).toEqual(new Set([trace_id]));
    expect(new Set(spans.map((span) => span.span_id)).size).toBe(spans.length);
  });

  test('the cost is the one that Claude Code computed, with cached tokens apart', () => {
    expect(spans.map((span) => Number(span.cost_pico_usd) / 1e12)).toEqual([0, 0, 0.001725, 0, 0.00123, 0]);
    expect(spans[2]).toMatchObject({
      cached_input_tokens: 1000,
      cache_write_tokens: 200,
      provider: 'anthropic',
      price: { source: 'given' },
    });
  });

  test('prompt, tool input and answer become texts', () => {
    expect(spans.map(({ prompt: asked, response }) => [asked, response])).toEqual([
      ['What is the capital of France?', ''],
      ['', ''],
      ['', ''],
      ['{"command":"echo hi","description":"say hi"}', ''],
      ['', ''],
      ['', 'Paris.'],
    ]);
  });

  test('user, session, department and agent are on every record', () => {
    for (const span of spans)
      expect(span).toMatchObject({
        session_id: span.attributes['session.id'],
        user_id: span.attributes['user.id'],
        department: 'engineering',
        agent_id: 'claude-code',
        service: 'claude-code',
      });
    const known = logSpan({
      time_unix_nano: '1795470102338000000',
      body: 'claude_code.user_prompt',
      attributes: {
        'event.name': 'user_prompt',
        'session.id': 's',
        'user.id': 'a machine',
        'user.account_uuid': 'u-1',
        'user.email': 'ada@example.com',
      },
    });
    expect(known).toMatchObject({ user_id: 'ada@example.com', trace_id: 's' });
  });

  test('a record with a trace id stays in that trace, below its span', () => {
    for (const span of spansOfAgent('claude_code_traced'))
      expect([span.trace_id, span.parent_span_id]).toEqual([
        span.attributes['otel.trace_id'],
        span.attributes['otel.span_id'],
      ]);
  });

  test('spans of its own tracing have the tokens and the price of their calls, and the prompt', () => {
    const { spans = [], span_scope = '' } = AGENTS['claude_code_traced'] ?? {};
    const made = spans.map((span) => decoded({ ...span, ...AT }, {}, span_scope));
    expect(made.filter(({ kind }) => kind === 'llm').map(used)).toEqual([
      ['llm', 'claude-sonnet-4-5', 1225, 40, 1000],
      ['llm', 'claude-sonnet-4-5', 1225, 7, 1000],
    ]);
    // 25 at 3 USD for a million, 1000 cached at 0.30, 200 written at 3.75, 47 in two answers out at 15.
    const cost = made.reduce((sum, { cost_pico_usd }) => sum + cost_pico_usd, 0n);
    expect(cost).toBe(2n * 1_125_000_000n + 47n * 15_000_000n);
    expect(made.find(({ name }) => name === 'claude_code.interaction')).toMatchObject({
      kind: 'event',
      prompt: 'What is the capital of France?',
    });
  });

  test('a failed request is a call without tokens and with an outcome', () => {
    const failed = (error: string) =>
      logSpan({
        time_unix_nano: '1795470102338000000',
        body: 'claude_code.api_error',
        attributes: {
          'event.name': 'api_error',
          'prompt.id': 'p',
          model: 'claude-sonnet-4-5',
          error,
          status_code: '529',
          duration_ms: '1500',
        },
      });
    expect(failed('Overloaded')).toMatchObject({
      kind: 'llm',
      outcome: 'error',
      input_tokens: 0,
      attributes: { error_message: 'Overloaded' },
    });
    expect(failed('Request timed out')).toMatchObject({ outcome: 'timeout' });
  });
});

test('Codex: a conversation is one trace, and the completed response is the call', () => {
  const spans = spansOfAgent('codex');
  expect(rows('codex')).toEqual([
    ['event', 'codex.user_prompt', '', 0, 0],
    ['event', 'codex.api_request', '', 0, 0],
    ['event', 'codex.sse_event', '', 0, 0],
    ['event', 'codex.sse_event', '', 0, 0],
    ['event', 'codex.sse_event', '', 0, 0],
    ['llm', 'codex.sse_event', 'gpt-5-codex', 120, 30],
  ]);
  expect(new Set(spans.map((span) => span.trace_id))).toEqual(new Set([spans[0]?.attributes['conversation.id']]));
  expect(new Set(spans.map((span) => span.session_id))).toEqual(new Set([spans[0]?.trace_id]));
  expect(spans.at(-1)).toMatchObject({ cached_input_tokens: 100, reasoning_tokens: 10, provider: 'openai' });
  expect(Number(spans.at(-1)?.cost_pico_usd)).toBeGreaterThan(0);
});

test('Codex: a failed tool is a tool with its input, output and outcome', () => {
  const tool = logSpan({
    observed_time_unix_nano: '1795470102338000000',
    attributes: {
      'event.name': 'codex.tool_result',
      'conversation.id': 'c',
      tool_name: 'shell',
      call_id: 'call_1',
      arguments: '{"command":["ls"]}',
      duration_ms: '1200',
      success: 'false',
      output: 'no such file',
    },
  });
  expect(tool).toMatchObject({
    kind: 'tool',
    name: 'shell',
    outcome: 'error',
    prompt: '{"command":["ls"]}',
    response: 'no such file',
  });
});

test('Gemini CLI: a session is one trace, and thoughts count as output', () => {
  const spans = spansOfAgent('gemini_cli');
  const call = spans.find((span) => span.kind === 'llm');
  expect(call).toMatchObject({
    name: 'gemini_cli.api_response',
    model: 'gemini-2.5-pro',
    input_tokens: 120,
    output_tokens: 12,
    cached_input_tokens: 50,
    reasoning_tokens: 5,
    response: 'Paris.',
    session_id: call?.trace_id,
  });
  expect(spans.filter((span) => span.kind === 'llm')).toHaveLength(1);
  expect((call?.ended_at ?? 0) - (call?.started_at ?? 0)).toBe(2266);
});
