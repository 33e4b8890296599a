import { describe, expect, it } from 'vitest';
import { messagesIn } from '../../../pipeline/domain/conversation/messages.ts';
import { callsOf } from '../../../pipeline/domain/conversation/parts.ts';
import { type ModelCall, stepsOf, type ToolRun } from '../../../pipeline/domain/conversation/steps.ts';

const ROOT = 0;
const said = (role: string, content: string, more: Record<string, unknown> = {}) => ({ role, content, ...more });
const asks = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });

type TestCall = ModelCall & { started_ms: number };

function aCall(span: number, messages: unknown[], over: Partial<TestCall> = {}): TestCall {
  return {
    span,
    span_id: `call-${span}`,
    ancestors: [ROOT],
    started_ms: span * 10,
    messages: messagesIn(JSON.stringify(messages)),
    response: `answer ${span}`,
    tool_calls: [],
    ...over,
  };
}

function aTool(span: number, name: string, over: Partial<ToolRun> = {}): ToolRun {
  return {
    span,
    span_id: `tool-${span}`,
    ancestors: [ROOT],
    started_ms: span * 10,
    name,
    call_id: '',
    input: 'in',
    output: 'out',
    ...over,
  };
}

const stepsFor = (calls: TestCall[], tools: ToolRun[] = [], before: ModelCall[] = []) =>
  stepsOf({ calls, before, tools });
const added = (calls: TestCall[], step: number): string[] =>
  stepsFor(calls)[step]?.changes.added.map((at) => calls[step]?.messages[at]?.text ?? '') ?? [];

const SYSTEM = said('system', 'Be brief.');

describe('stepsOf', () => {
  it('shows only the messages that the earlier call did not have', () => {
    const first = aCall(1, [SYSTEM, said('user', 'Hi')]);
    const second = aCall(2, [SYSTEM, said('user', 'Hi'), said('assistant', 'answer 1'), said('user', 'More')]);
    const [one, two] = stepsFor([first, second]);
    expect([one?.base, one?.changes.added]).toEqual([null, [0, 1]]);
    expect([two?.base, two?.changes.kept, two?.changes.added]).toEqual([first, 2, [2, 3]]);
  });

  it('marks the answer that an earlier step shows already', () => {
    const calls = [
      aCall(1, [said('user', 'Hi')]),
      aCall(2, [said('user', 'Hi'), said('assistant', 'answer 1'), said('user', 'More')]),
    ];
    expect([...(stepsFor(calls)[1]?.repeats ?? [])]).toEqual([[1, 'answer']]);
  });

  it('gives tool calls the results that the next call was sent, and the spans of the tools', () => {
    const asked = [asks('c1', 'search'), asks('c2', 'book')];
    const calls = [
      aCall(1, [said('user', 'Hi')], { response: '', tool_calls: callsOf(asked) }),
      aCall(4, [
        said('user', 'Hi'),
        { role: 'assistant', content: null, tool_calls: asked },
        said('tool', 'found', { tool_call_id: 'c1' }),
      ]),
    ];
    const [one, two] = stepsFor(calls, [aTool(2, 'search'), aTool(3, 'book'), aTool(3.5, 'log')]);
    expect(one?.calls.map(({ name, result, run }) => [name, result, run?.span_id])).toEqual([
      ['search', 'found', 'tool-2'],
      ['book', 'out', 'tool-3'],
      ['log', 'out', 'tool-3.5'],
    ]);
    expect([...(two?.repeats ?? [])]).toEqual([
      [1, 'answer'],
      [2, 'tool_result'],
    ]);
  });

  it('finds the span of a tool by the id of its call before its name', () => {
    const calls = [
      aCall(1, [said('user', 'Hi')], { tool_calls: callsOf([asks('c1', 'search'), asks('c2', 'search')]) }),
    ];
    const tools = [aTool(2, 'search', { call_id: 'c2' }), aTool(3, 'search', { call_id: 'c1' })];
    expect(stepsFor(calls, tools)[0]?.calls.map(({ run }) => run?.span_id)).toEqual(['tool-3', 'tool-2']);
  });

  it('compares with the earlier call whose messages begin the same for longest', () => {
    const long = aCall(1, [SYSTEM, said('user', 'Hi'), said('assistant', 'a')]);
    const short = aCall(2, [SYSTEM, said('user', 'Hi')]);
    const next = aCall(3, [SYSTEM, said('user', 'Hi'), said('assistant', 'a'), said('user', 'b')]);
    expect(stepsFor([long, short, next])[2]?.base).toBe(long);
  });

  it('compares with the nearest call in the tree if several begin the same', () => {
    const messages = [SYSTEM, said('user', 'Hi')];
    const [mine, others] = [aCall(3, messages, { ancestors: [1, ROOT] }), aCall(4, messages, { ancestors: [2, ROOT] })];
    const next = aCall(5, [...messages, said('user', 'More')], { ancestors: [1, ROOT] });
    expect(stepsFor([mine, others, next])[2]?.base).toBe(mine);
  });

  it('does not compare agents that share nothing but their system message', () => {
    const one = aCall(3, [SYSTEM, said('user', 'task A')], { ancestors: [1, ROOT] });
    const other = aCall(4, [SYSTEM, said('user', 'task B')], { ancestors: [2, ROOT] });
    expect(added([one, other], 1)).toEqual(['Be brief.', 'task B']);
    const sibling = { ...other, ancestors: [1, ROOT] };
    expect(stepsFor([one, sibling])[1]?.changes).toMatchObject({ kept: 1, changed: [{ before: 1, after: 1 }] });
  });

  it('follows a conversation from one turn to the next, each of which is a span of its own', () => {
    const one = aCall(3, [SYSTEM, said('user', 'Hi')], { ancestors: [1, ROOT] });
    const two = aCall(4, [SYSTEM, said('user', 'Hi'), said('user', 'More')], { ancestors: [2, ROOT] });
    expect(added([one, two], 1)).toEqual(['More']);
  });

  it('continues a call of the page before', () => {
    const before = aCall(1, [said('user', 'Hi')]);
    const step = stepsFor([aCall(2, [said('user', 'Hi'), said('user', 'More')])], [], [before])[0];
    expect([step?.base, step?.changes.added]).toEqual([before, [1]]);
  });

  it('tells what was dropped when a conversation is shortened', () => {
    const turns = ['a', 'b', 'c', 'd'].map((text) => said('user', text));
    const step = stepsFor([aCall(1, [SYSTEM, ...turns]), aCall(2, [SYSTEM, ...turns.slice(3)])])[1];
    expect(step?.changes).toEqual({ kept: 2, added: [], dropped: [1, 2, 3], changed: [] });
  });
});
