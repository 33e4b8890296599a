import { describe, expect, it } from 'vitest';
import { replayEvents } from '../../../pipeline/domain/traces/replay_events.ts';
import {
  messagesOf,
  planReplay,
  REPLAY_CALLS_MAX,
  REPLAY_CHARS_MAX,
  type ReplayCall,
  type ReplaySpan,
} from '../../../pipeline/domain/traces/replay.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import { checkEvent } from '../../../schemas/formats/formats.ts';

let serial = 0;
const aCall = (over: Partial<ReplaySpan> = {}): ReplaySpan => ({
  span_id: `span-${++serial}`,
  parent_span_id: '',
  kind: 'llm',
  name: 'gpt-4o',
  model: 'gpt-4o',
  started_ms: 1000,
  attributes: {},
  tags: ['t'],
  prompt: '[{"role":"user","content":"hi"}]',
  response: 'hello',
  sampled: true,
  ...over,
});
const prompts: Record<string, PromptRecord> = {
  greet: {
    org_id: 'o',
    name: 'greet',
    version: '2',
    template: 'Greet {{name}} in {{ language }}',
    model: 'gpt-4o-mini',
    created_at: '2026-01-01T00:00:00.000Z',
  },
  plain: {
    org_id: 'o',
    name: 'plain',
    version: 'a',
    template: 'Say something',
    model: null,
    created_at: '2026-01-01T00:00:00.000Z',
  },
};
const plan = (spans: ReplaySpan[]) => planReplay(spans, (name) => prompts[name] ?? null);
function calls(spans: ReplaySpan[]): ReplayCall[] {
  const planned = plan(spans);
  if (!planned.ok) throw new Error(planned.detail);
  return planned.calls;
}
function refusal(...spans: ReplaySpan[]): string {
  const planned = plan(spans);
  return planned.ok ? 'planned' : planned.detail;
}
const named = (prompt_name: string, prompt_variables?: unknown) => ({ attributes: { prompt_name, prompt_variables } });

describe('a plan', () => {
  it('a plan uses the newest version of a named prompt, with the variables of the span', () => {
    const [call] = calls([aCall(named('greet', { name: 'Ann', language: 'French', extra: 1 }))]);
    expect(call).toMatchObject({
      prompt_name: 'greet',
      prompt_version: '2',
      model: 'gpt-4o-mini',
      new_prompt: 'Greet Ann in French',
      messages: [{ role: 'user', content: 'Greet Ann in French' }],
    });
  });

  it('a plan accepts variables given as the JSON of an object', () => {
    expect(calls([aCall(named('greet', '{"name": "Ann", "language": "French"}'))])[0]?.new_prompt).toBe(
      'Greet Ann in French',
    );
  });

  it('a plan keeps the model of the span where the prompt names none, and needs no variables where it has none', () => {
    expect(calls([aCall(named('plain'))])[0]).toMatchObject({
      prompt_version: 'a',
      model: 'gpt-4o',
      new_prompt: 'Say something',
    });
  });

  it('a plan repeats any other call as it was', () => {
    const span = aCall();
    expect(calls([span])[0]).toMatchObject({
      prompt_name: null,
      prompt_version: null,
      model: 'gpt-4o',
      new_prompt: span.prompt,
      messages: [{ role: 'user', content: 'hi' }],
    });
  });

  it('a plan is in the order in which the calls were made, without spans that are not model calls', () => {
    const spans = [aCall({ started_ms: 3 }), aCall({ started_ms: 1 }), aCall({ kind: 'tool', started_ms: 2 })];
    expect(calls(spans).map(({ span }) => span.started_ms)).toEqual([1, 3]);
  });

  it("a plan keeps the parameters that determine a model's answer", () => {
    const attributes = {
      'gen_ai.request.temperature': 0.2,
      'gen_ai.request.max_tokens': 50,
      'gen_ai.request.stop': ['\n'],
      'gen_ai.request.top_p': 'no number',
      'gen_ai.request.stream': true,
      'gen_ai.request.tool_choice': 'auto',
      other: 1,
    };
    expect(calls([aCall({ attributes })])[0]?.parameters).toEqual({ temperature: 0.2, max_tokens: 50, stop: ['\n'] });
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(
      calls([aCall({ attributes: { ...attributes, 'gen_ai.tool.definitions': tools } })])[0]?.parameters,
    ).toMatchObject({
      tools,
      tool_choice: 'auto',
    });
  });

  it('a plan is rejected with the span and the reason', () => {
    expect(refusal(aCall({ span_id: 'x', ...named('gone') }))).toBe(
      'Span x: its prompt "gone" is not in the registry.',
    );
    expect(refusal(aCall({ span_id: 'x', ...named('greet', { name: 'Ann' }) }))).toMatch(
      /^Span x: .*lacks language, which greet@2 has/,
    );
    expect(refusal(aCall(named('greet')))).toContain('lacks name, language');
    expect(refusal(aCall(named('greet', 'Ann')))).toContain('prompt_variables is no object');
    expect(refusal(aCall({ prompt: '', response: '' }))).toContain('no longer stored');
    expect(refusal(aCall({ prompt: '' }))).toContain('its prompt is not stored');
    expect(refusal(aCall({ sampled: false, prompt: '', response: '' }))).toContain('sampling');
    expect(refusal(aCall({ attributes: { prompt_truncated: true } }))).toContain('was cut');
    expect(refusal(aCall({ model: '' }))).toContain('names a model');
    expect(refusal(aCall(named('greet', { name: 'x'.repeat(5 * 1024 * 1024), language: 'y' })))).toContain(
      'characters with the variables',
    );
    const long = aCall({ prompt: 'x'.repeat(REPLAY_CHARS_MAX / 4) });
    expect(refusal(long, long, long, long, aCall())).toContain('The prompts have more than');
    expect(refusal(aCall({ kind: 'tool' }))).toContain('no model call');
    expect(refusal(...Array.from({ length: REPLAY_CALLS_MAX + 1 }, () => aCall()))).toContain('101 model calls');
    expect(refusal(...Array.from({ length: REPLAY_CALLS_MAX }, () => aCall()))).toBe('planned');
  });
});

describe('a stored prompt', () => {
  it('a stored prompt becomes the messages that it is the JSON of, else one message of the user', () => {
    const chat = [
      { role: 'system', content: 's' },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'tool', content: 'x', tool_call_id: 'c' },
    ];
    expect(messagesOf(JSON.stringify(chat))).toEqual(chat);
    for (const text of ['What now?', '{"a":1}', '[]', '[1]', '["a"]', '[{"content":"no role"}]'])
      expect(messagesOf(text)).toEqual([{ role: 'user', content: text }]);
  });

  it("a stored prompt uses the API's names, whatever library it is from", () => {
    expect(
      messagesOf('[{"role":"human","content":"a"},{"role":"ai","content":"b"},{"role":"constructor","content":"c"}]'),
    ).toEqual([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'constructor', content: 'c' },
    ]);
    expect(
      messagesOf('[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]'),
    ).toEqual([{ role: 'user', content: 'ab' }]);
  });
});

describe('the events of a replay', () => {
  const raw = {
    id: 'r',
    choices: [{ index: 0, message: { role: 'assistant', content: 'new' } }],
    usage: { prompt_tokens: 3 },
  };
  const events = (spans: ReplaySpan[]) => {
    let ids = 0;
    const answered = calls(spans).map((call, i) => ({
      ...call,
      answer: { raw, started_at: 5000 + i, ended_at: 5100 + i },
    }));
    return replayEvents({ trace_id: 'new', replay_of: 'old' }, spans, answered, () => `new-${++ids}`);
  };
  const bodies = (spans: ReplaySpan[]) => events(spans).map(({ body }) => body);

  it('ingest accepts the events of a replay', () => {
    const spans = [aCall({ span_id: 'agent', kind: 'event', name: 'agent' }), aCall({ parent_span_id: 'agent' })];
    for (const { format, body } of events(spans)) expect(checkEvent(format, body)).toMatchObject({ ok: true });
  });

  it('a replay has one root where the old root was the only call without a parent', () => {
    const root = aCall({ ...named('greet', { name: 'Ann', language: 'French' }) });
    const inner = aCall({ parent_span_id: root.span_id, started_ms: 2000 });
    const [first, second, ...rest] = bodies([root, inner]);
    expect(rest).toEqual([]);
    expect(first).toMatchObject({
      trace_id: 'new',
      span_id: 'new-1',
      request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Greet Ann in French' }] },
      response: raw,
      outcome: 'success',
      duration_ms: 100,
      started_at: '1970-01-01T00:00:05.000Z',
      tags: ['t'],
      attributes: {
        replay_of: 'old',
        replay_of_span: root.span_id,
        force_trace: true,
        prompt_name: 'greet',
        prompt_version: '2',
        prompt_variables: { name: 'Ann', language: 'French' },
      },
    });
    expect(first).not.toHaveProperty('parent_span_id');
    expect(second).toMatchObject({ parent_span_id: 'new-1', attributes: { replay_of_span: inner.span_id } });
    expect(second?.['attributes']).not.toHaveProperty('prompt_name');
  });

  it("a replay's calls are under a step of the old root's name, each below its nearest replayed parent", () => {
    const root = aCall({
      span_id: 'agent',
      kind: 'event',
      name: 'agent',
      attributes: { agent_id: 'bot', other: 1 },
      tags: ['r'],
    });
    const outer = aCall({ span_id: 'outer', parent_span_id: 'agent', started_ms: 2000 });
    const tool = aCall({ span_id: 'tool', kind: 'tool', parent_span_id: 'outer', started_ms: 2100 });
    const inner = aCall({ span_id: 'inner', parent_span_id: 'tool', started_ms: 2200 });
    const [holder, first, second] = events([root, outer, tool, inner]);
    expect(holder).toMatchObject({
      format: 'custom',
      body: {
        name: 'agent',
        duration_ms: 101,
        tags: ['r'],
        attributes: { agent_id: 'bot', replay_of: 'old', replay_of_span: 'agent' },
      },
    });
    expect(holder?.body).not.toHaveProperty('parent_span_id');
    expect(holder?.body['attributes']).not.toHaveProperty('other');
    expect(first?.body['parent_span_id']).toBe(holder?.body['span_id']);
    expect(second?.body['parent_span_id']).toBe(first?.body['span_id']);
  });

  it('a replay ends where spans are each other’s parents, or name one that never arrived', () => {
    const a = aCall({ span_id: 'a', kind: 'tool', parent_span_id: 'b' });
    const b = aCall({ span_id: 'b', kind: 'tool', parent_span_id: 'a' });
    const call = aCall({ parent_span_id: 'a' });
    const lost = aCall({ parent_span_id: 'never came' });
    const [holder, ...rest] = bodies([a, b, call, lost]);
    expect(holder).toMatchObject({ name: 'replay' });
    expect(rest.map((body) => body['parent_span_id'])).toEqual([holder?.['span_id'], holder?.['span_id']]);
  });
});
