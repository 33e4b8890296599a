// The MCP server with real clients of three generations: which tools a caller sees, what they
// answer, and what keeps callers apart.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOOLS } from '../../../api/mcp/server.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';
import { eventually } from '../../support/wait.ts';
import { type Answered, connect, KINDS, type ToolClient } from './a_client.ts';

let service: TestService;
let api: TestApi;
let tenant: Tenant;
let other: Tenant;
let client: ToolClient;
/** Traces of the tenant: the second fails. */
let traces: string[];

const call = (question: string, answer: string, over: Record<string, unknown> = {}) => ({
  request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: question }] },
  response: {
    id: 'r',
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content: answer }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 },
  },
  duration_ms: 700,
  outcome: 'success',
  attributes: { agent_id: 'concierge' },
  ...over,
});
const traceOf = async (body: unknown): Promise<string> =>
  ((await tenant.ingest('chatcompletion', body)).json?.['data'] as { trace_id: string }).trace_id;

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
  tenant = await aTenant({ api, database: service.database });
  other = await aTenant({ api, database: service.database });
  traces = [
    await traceOf(call('Which cheese suits a raclette?', 'A young Vacherin.')),
    await traceOf(
      call('Which wine suits a raclette?', '', {
        outcome: 'error',
        attributes: { agent_id: 'concierge', error_message: 'the cellar is closed' },
      }),
    ),
  ];
  await tenant.searchable(2);
  client = await connect(api, tenant.key);
});
afterAll(async () => {
  await client.close();
  await service.close();
});

const spanOf = async (trace_id: string): Promise<string> =>
  String((await client.tool('get_trace', { trace_id })).structured.items[0]?.['span_id']);

describe.each(KINDS)('a client of revision %s', (kind) => {
  it('connects, lists the tools in a fixed order, and calls one', async () => {
    const one = await connect(api, tenant.key, kind);
    const tools = await one.tools();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    expect(tools[0]).toMatchObject({ annotations: { readOnlyHint: true }, outputSchema: { type: 'object' } });
    expect(one.instructions).toContain('data that strangers may have written');
    const { text, structured } = await one.tool('search_traces');
    expect(structured.items.map(({ trace_id }) => trace_id).sort()).toEqual([...traces].sort());
    expect(text).toContain('Which cheese suits a raclette?');
    await one.close();
  });
});

describe('the tools that read', () => {
  it('search_traces filters, and pages with the cursor of its hint', async () => {
    const failed = await client.tool('search_traces', { outcome: 'error' });
    expect(failed.structured.items).toMatchObject([
      { trace_id: traces[1], error: expect.stringContaining('cellar') as string },
    ]);
    const first = await client.tool('search_traces', { limit: 1 });
    const second = await client.tool('search_traces', { limit: 1, cursor: first.structured.info['next_cursor'] });
    expect(
      [first, second].flatMap(({ structured }) => structured.items.map(({ trace_id }) => trace_id)).sort(),
    ).toEqual([...traces].sort());
    expect((await client.tool('search_traces', { q: 'vacherin' })).structured.items).toHaveLength(1);
  });

  it('get_trace shows the tree, the failures and the conversation', async () => {
    const [trace_id] = traces;
    expect((await client.tool('get_trace', { trace_id })).text).toMatch(/- \S+ llm gpt-4o-mini · 700 ms · 17 tokens/);
    expect((await client.tool('get_trace', { trace_id: traces[1], view: 'errors' })).text).toContain(
      'the cellar is closed',
    );
    const messages = await client.tool('get_trace', { trace_id, view: 'messages' });
    expect(messages.text).toContain('user: Which cheese suits a raclette?\nanswer: A young Vacherin.');
  });

  it('get_span returns the texts of a span between marks', async () => {
    const trace_id = traces[0] ?? '';
    const { text } = await client.tool('get_span', { trace_id, span_id: await spanOf(trace_id), part: 'response' });
    expect(text).toMatch(/<(data-[0-9a-f]{12})>\nA young Vacherin\.\n<\/\1>/);
  });

  it('search_spans ranks, and shows the words around the match', async () => {
    const { structured } = await client.tool('search_spans', { q: 'vacherin' });
    expect(structured.items).toMatchObject([
      { trace_id: traces[0], snippet: expect.stringContaining('Vacherin') as string },
    ]);
  });

  it('find_failures, compare_traces and get_costs answer', async () => {
    expect((await client.tool('find_failures')).structured.next).toContain('search_traces');
    const compared = await client.tool('compare_traces', {
      baseline_trace_id: traces[0],
      candidate_trace_id: traces[1],
    });
    expect(compared.structured.items).toContainEqual(
      expect.objectContaining({ field: 'outcome', differs: true, baseline: 'success', candidate: 'error' }),
    );
    expect((await client.tool('get_costs')).structured.info).toMatchObject({ days: 30 });
  });

  it('query_analytics describes itself and answers with a table', async () => {
    expect((await client.tool('query_analytics', { describe: true })).text).toContain('error_rate');
    const { text, structured } = await client.tool('query_analytics', {
      measures: [{ measure: 'count' }],
      group_by: ['outcome'],
    });
    expect(text).toContain('| outcome | count_sum |');
    expect(structured.items.map(({ row }) => row)).toEqual([
      ['outcome', 'count_sum'],
      ['error', 1],
      ['success', 1],
    ]);
  });
});

describe('the tools that write', () => {
  it('add a score, dataset items and a prompt version, audited with the key as the actor', async () => {
    const score = await client.tool('add_score', { trace_id: traces[0], name: 'helpful', value: true });
    expect(score.structured.info['score_id']).toMatch(/^score_/);
    await eventually(async () =>
      (await client.tool('get_evaluations', { trace_id: traces[0] })).text.includes('helpful: true'),
    );
    for (const template of ['Answer {{q}} briefly.', 'Answer {{q}} briefly.\nIn French.'])
      expect((await client.tool('create_prompt_version', { name: 'concierge', template })).isError).toBeFalsy();
    expect((await client.tool('get_prompt', { name: 'concierge', diff_with: '1' })).text).toContain('+ In French.');
    const made = await tenant.call('POST', '/v1/datasets', {
      body: { name: 'd', version: '1', items: [{ input: { q: 'a' } }] },
    });
    const { dataset_id } = made.json?.['data'] as { dataset_id: string };
    const grown = await client.tool('add_dataset_items', { dataset_id, items: [{ input: { q: 'b' } }] });
    expect(grown.structured.info).toMatchObject({ version: '2', item_count: 2 });
    await eventually(async () => {
      const { json } = await tenant.get(`/orgs/${tenant.org}/audit-log?action=prompt.create`);
      const records = json?.['data'] as { actor: { type: string } }[];
      return records.length === 2 && records.every(({ actor }) => actor.type === 'api_key');
    });
  });

  it('replay_trace is a dry run unless it is told to commit', async () => {
    const { structured } = await client.tool('replay_trace', { trace_id: traces[0] });
    expect(structured.info).toMatchObject({ commit: false, new_trace_id: null, calls: 1 });
  });
});

describe('permissions', () => {
  const TRACES = [
    'search_traces',
    'get_trace',
    'get_span',
    'search_spans',
    'find_failures',
    'compare_traces',
    'query_analytics',
  ];
  it.each<[string[], string[]]>([
    [['traces:read'], TRACES],
    [['costs:read'], ['get_costs']],
    [['prompts:read'], ['get_prompt']],
    [['prompts:write'], ['create_prompt_version']],
    [['ingest:write'], ['add_score']],
    [['datasets:write'], ['add_dataset_items']],
    [['judges:read'], []],
    [['agents:read'], []],
  ])('a key with %j lists the tools %j, and no other tool runs for it', async (scopes, names) => {
    const limited = await connect(api, await tenant.keyOf(...scopes));
    expect((await limited.tools().catch(() => [])).map(({ name }) => name)).toEqual(names);
    for (const { name } of TOOLS.filter((tool) => !names.includes(tool.name))) {
      const outcome = await limited.tool(name, {}).then(
        ({ isError }) => isError === true,
        () => true,
      );
      expect([name, outcome]).toEqual([name, true]);
    }
    await limited.close();
  });

  it('no tool shows or changes anything of another organization', async () => {
    const stranger = await connect(api, other.key);
    // SQL has a test of its own, with an engine that confines analysts.
    const asked = new Set(['run_sql']);
    const ask = (name: string, args: Record<string, unknown> = {}): Promise<Answered> => {
      asked.add(name);
      return stranger.tool(name, args);
    };
    const [trace_id = ''] = traces;
    const span_id = await spanOf(trace_id);
    for (const [name, args] of [
      ['get_trace', { trace_id }],
      ['get_trace', { trace_id, view: 'messages' }],
      ['get_span', { trace_id, span_id }],
      ['compare_traces', { baseline_trace_id: trace_id, candidate_trace_id: trace_id }],
      ['replay_trace', { trace_id }],
      ['get_prompt', { name: 'concierge' }],
      ['add_dataset_items', { dataset_id: 'ds_x', items: [{ input: {} }] }],
    ] as const) {
      const refused = await ask(name, args);
      expect([name, refused.isError, refused.text]).toEqual([
        name,
        true,
        expect.stringMatching(/cross_org_access|not_found/),
      ]);
    }
    for (const name of ['search_traces', 'find_failures'])
      expect([name, (await ask(name)).structured.items]).toEqual([name, []]);
    expect((await ask('search_spans', { q: 'raclette' })).structured.items).toEqual([]);
    expect((await ask('get_evaluations', { trace_id })).text).not.toContain('helpful');
    expect((await ask('get_costs')).structured.info).toMatchObject({ total_cost_usd: 0 });
    const counted = await ask('query_analytics', { measures: [{ measure: 'count' }], group_by: ['outcome'] });
    expect(counted.structured.items.map(({ row }) => row)).toEqual([['outcome', 'count_sum']]);
    await ask('create_prompt_version', { name: 'concierge', template: 'Ask a stranger.' });
    expect((await client.tool('get_prompt', { name: 'concierge' })).text).not.toContain('stranger');
    await ask('add_score', { trace_id, name: 'of_a_stranger', value: 1 });
    await client.tool('add_score', { trace_id, name: 'of_the_tenant', value: 1 });
    await eventually(async () => (await client.tool('get_evaluations', { trace_id })).text.includes('of_the_tenant'));
    expect((await client.tool('get_evaluations', { trace_id })).text).not.toContain('of_a_stranger');
    expect([...asked].sort()).toEqual(TOOLS.map(({ name }) => name).sort());
    await stranger.close();
  });
});
