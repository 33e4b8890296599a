// The sizes of what the MCP server sends, in tokens: definitions of the tools, and answers about a
// trace of 10,000 spans with texts of a megabyte.
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import { connect, type ToolClient } from './a_client.ts';

const SPANS = 10_000;
const BATCH = 1000;
const TEXT_CHARS = 1_000_000;
/** Model calls of the trace that is replayed. */
const CALLS = 40;
const DEFINITIONS_TOKENS_MAX = 6000;
const TRACE = 'trc_of_ten_thousand';

let service: TestService;
let tenant: Tenant;
let client: ToolClient;
let llm: string[];

/** Texts with few and with many tokens for their length. */
const TEXTS: Record<string, string> = {
  prose: 'The quick brown fox jumps over the lazy dog and asks what the weather is like. ',
  chinese: '今天天气很好我们去公园散步看见许多花开了',
  noise: 'q7Zx+/Lk9aPw0Vb3Yt==Rr8"\\\n#é',
  emoji: '🧀🍷🫕👩‍🍳',
};

/** Returns a model call of a trace that asks and answers with a text. */
const callOf = (content: string, trace_id: string): Record<string, unknown> => ({
  request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content }] },
  response: {
    id: 'r',
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
  },
  trace_id,
  ...(trace_id === TRACE ? { parent_span_id: 'span_0' } : {}),
  duration_ms: 10,
  outcome: 'success',
});

beforeAll(async () => {
  service = await TestService.start({ api: { bodyBytesMax: 8_000_000 } });
  const api = await service.startApi();
  tenant = await aTenant({ api, database: service.database });
  for (let from = 0; from < SPANS; from += BATCH)
    await tenant.ingest('custom', {
      events: Array.from({ length: BATCH }, (_, index) => ({
        name: `step ${from + index} ${'of a long plan '.repeat(20)}`,
        span_id: `span_${from + index}`,
        ...(from + index === 0 ? {} : { parent_span_id: `span_${Math.floor((from + index - 1) / 5)}` }),
        trace_id: TRACE,
        outcome: index % 3 === 0 ? 'error' : 'success',
        duration_ms: 5,
        attributes: { error_message: 'failed because '.repeat(200), serial: from + index },
      })),
    });
  llm = [];
  for (const piece of Object.values(TEXTS)) {
    const text = piece
      .repeat(Math.ceil(TEXT_CHARS / piece.length))
      .slice(0, TEXT_CHARS)
      .toWellFormed();
    const { json } = await tenant.ingest('chatcompletion', callOf(text, TRACE));
    llm.push((json?.['data'] as { span_id: string }).span_id);
  }
  await tenant.searchable(SPANS + llm.length);
  client = await connect(api, tenant.key);
}, 180_000);
afterAll(async () => {
  await client.close();
  await service.close();
});

/** Calls a tool and checks both forms of its answer. */
async function within(budget: number, name: string, args: Record<string, unknown>): Promise<void> {
  const { isError, text, structured } = await client.tool(name, args);
  expect([name, args, isError, isError === true ? text : '']).toEqual([name, args, undefined, '']);
  for (const form of [text, JSON.stringify(structured)])
    expect([name, args, countTokens(form) <= budget, countTokens(form)]).toEqual([
      name,
      args,
      true,
      expect.any(Number),
    ]);
}

it('the definitions of all tools have at most 6,000 tokens', async () => {
  const tools = await client.tools();
  expect(countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(DEFINITIONS_TOKENS_MAX);
});

it('every tool stays within its budget', async () => {
  await within(2500, 'search_traces', {});
  await within(2500, 'search_traces', { limit: 50, max_chars: 100_000 });
  for (const view of ['outline', 'errors', 'messages'])
    await within(6000, 'get_trace', { trace_id: TRACE, view, max_chars: 100_000 });
  for (const span_id of [...llm, 'span_0'])
    for (const part of ['all', 'prompt', 'response', 'attributes'])
      await within(4000, 'get_span', { trace_id: TRACE, span_id, part, max_chars: 100_000 });
  await within(2500, 'search_spans', { q: 'fox weather', limit: 50 });
  await within(2000, 'find_failures', { limit: 50 });
  await within(2000, 'compare_traces', { baseline_trace_id: TRACE, candidate_trace_id: TRACE });
  await within(1500, 'get_costs', { days: 365 });
  await within(3000, 'query_analytics', { describe: true });
  await within(3000, 'query_analytics', { group_by: ['name'], top: 100, max_chars: 100_000 });
  await within(2000, 'get_evaluations', { trace_id: TRACE });
});

it('every tool of prompts and every tool that writes stays within its budget', async () => {
  const template = (TEXTS['noise'] ?? '').repeat(2000);
  for (const version of ['1', '2'])
    await within(1000, 'create_prompt_version', { name: 'long', version, template: `${template}${version}` });
  await within(4000, 'get_prompt', { max_chars: 100_000 });
  await within(4000, 'get_prompt', { name: 'long', max_chars: 100_000 });
  await within(4000, 'get_prompt', { name: 'long', version: '2', diff_with: '1', max_chars: 100_000 });
  await within(1000, 'add_score', { trace_id: TRACE, name: 'n'.repeat(200), value: 1, comment: 'c'.repeat(10_000) });
  const body = { name: 'set', version: '1', items: [{ input: { q: 'a' } }] };
  const made = await tenant.call('POST', '/v1/datasets', { body });
  const { dataset_id } = made.json?.['data'] as { dataset_id: string };
  const items = Array.from({ length: 100 }, () => ({ input: { q: 'b'.repeat(10_000) } }));
  await within(1000, 'add_dataset_items', { dataset_id, items });
  await within(2000, 'get_evaluations', { trace_id: TRACE, limit: 100, max_chars: 100_000 });
});

it('replay_trace stays within its budget on a trace of many long calls', async () => {
  const trace_id = 'trc_of_long_calls';
  const pieces = Object.values(TEXTS);
  for (let serial = 0; serial < CALLS; serial += 1)
    await tenant.ingest('chatcompletion', callOf(`${serial} ${pieces[serial % pieces.length]?.repeat(400)}`, trace_id));
  await tenant.searchable(SPANS + llm.length + CALLS);
  await within(4000, 'replay_trace', { trace_id, max_chars: 100_000 });
  const { structured } = await client.tool('replay_trace', { trace_id });
  expect(structured.info).toMatchObject({ commit: false, calls: CALLS });
});

it('reads a whole outline and a whole text by following the hints', async () => {
  const first = await client.tool('get_trace', { trace_id: TRACE });
  const from = /"from":"(\d+)"/.exec(first.structured.next ?? '')?.[1];
  expect(Number(from)).toBe(first.structured.items.length);
  const second = await client.tool('get_trace', { trace_id: TRACE, from });
  const shown = [...first.structured.items, ...second.structured.items].map(({ span_id }) => span_id);
  expect(new Set(shown).size).toBe(shown.length);
  const asked = { trace_id: TRACE, span_id: llm[1], part: 'response' };
  let text = '';
  for (let offset: unknown = 0, pages = 0; typeof offset === 'number' && pages < 3; pages += 1) {
    const { structured } = await client.tool('get_span', { ...asked, offset });
    text += String(structured.items[0]?.['text']);
    offset = structured.info['next_offset'];
  }
  expect(text.length).toBeGreaterThan(5000);
  expect((TEXTS['chinese'] ?? '').repeat(10_000).startsWith(text)).toBe(true);
});

it('cuts an answer at max_chars and says what to call next', async () => {
  const { text, structured } = await client.tool('get_trace', { trace_id: TRACE, max_chars: 1000 });
  expect(text.length).toBeLessThan(1000 + 700);
  expect(structured.next).toMatch(/^get_trace \{"trace_id":"trc_of_ten_thousand","view":"outline","from":"\d+"\}/);
});
