import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runEvents, type DemoEvent } from '../../../ops/demo/events.ts';
import { outline, type OutlineSpan } from '../../../ops/demo/outline.ts';
import { planRun } from '../../../ops/demo/plan.ts';
import { agentOf, parseRuns, RunsFileError, type Run } from '../../../ops/demo/runs.ts';
import { checkEvent } from '../../../schemas/formats/formats.ts';

const START = Date.UTC(2026, 0, 31, 12);
const words = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

const sample = parseRuns(readFileSync(new URL('../../../ops/demo/sample_runs.json', import.meta.url), 'utf8'));

function aRun(change: Partial<Run> = {}): Run {
  return {
    task_id: 7,
    trial: 1,
    reward: 1,
    info: {},
    traj: [
      { role: 'system', content: '# Airline Agent Policy\n\nHelp.' },
      { role: 'user', content: 'book a flight' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [call('call_1', 'find_user', '{"id":"mia"}'), call('call_2', 'find_flights', '{}')],
      },
      { role: 'tool', tool_call_id: 'call_1', name: 'find_user', content: '{"name":"Mia"}' },
      { role: 'tool', tool_call_id: 'call_2', name: 'find_flights', content: 'Error: no flights' },
      { role: 'assistant', content: 'There is none today.' },
      { role: 'user', content: 'thanks' },
    ],
    ...change,
  };
}

function call(id: string, name: string, args: string) {
  return { id, type: 'function', function: { name, arguments: args } };
}

function eventsOf(run: Run, startedAt = START) {
  return runEvents(run, planRun(run, words), startedAt, 'load');
}

const field = (event: DemoEvent | undefined, name: string): unknown => event?.body[name];
const attribute = (event: DemoEvent | undefined, name: string): unknown =>
  (event?.body['attributes'] as Record<string, unknown>)[name];

describe('events of a run', () => {
  it('the events of a run put tools under the turn that called them, and turns under one root', () => {
    const { events, llm_spans, tool_spans } = eventsOf(aRun());
    const [turn, user, flights, last, root] = events;
    expect([llm_spans, tool_spans, events.length]).toEqual([2, 2, 5]);
    expect(field(root, 'parent_span_id')).toBeUndefined();
    expect([field(turn, 'parent_span_id'), field(last, 'parent_span_id')]).toEqual([
      field(root, 'span_id'),
      field(root, 'span_id'),
    ]);
    expect([field(user, 'parent_span_id'), field(flights, 'parent_span_id')]).toEqual([
      field(turn, 'span_id'),
      field(turn, 'span_id'),
    ]);
    expect([attribute(user, 'input'), attribute(user, 'output')]).toEqual([{ id: 'mia' }, { name: 'Mia' }]);
  });

  it('the events of a run send all earlier messages with each turn, and answer with the turn itself', () => {
    const run = aRun();
    const last = eventsOf(run).events.at(-2);
    expect(field(last, 'request')).toMatchObject({ messages: run.traj.slice(0, 5) });
    expect(field(last, 'response')).toMatchObject({ choices: [{ message: run.traj[5] }] });
  });

  it('the events of a run add up tokens over the turns', () => {
    const { events, input_tokens, output_tokens } = eventsOf(aRun());
    const usages = events
      .filter((event) => event.format === 'chatcompletion')
      .map((event) => (event.body['response'] as { usage: Record<string, number> }).usage);
    expect(usages.reduce((sum, usage) => sum + (usage['prompt_tokens'] ?? 0), 0)).toBe(input_tokens);
    expect(usages.reduce((sum, usage) => sum + (usage['completion_tokens'] ?? 0), 0)).toBe(output_tokens);
    for (const usage of usages)
      expect(usage['total_tokens']).toBe((usage['prompt_tokens'] ?? 0) + (usage['completion_tokens'] ?? 0));
  });

  it('the events of a run fail its root where reward is 0, and not a tool that the agent recovered from', () => {
    const outcomes = (run: Run) => eventsOf(run).events.map((event) => field(event, 'outcome'));
    expect(outcomes(aRun())).toEqual(['success', 'success', 'success', 'success', 'success']);
    expect(outcomes(aRun({ reward: 0 }))).toEqual(['success', 'success', 'error', 'success', 'error']);
    expect(outcomes(aRun({ reward: 0, info: { outcome: 'timeout' } })).at(-1)).toBe('timeout');
    expect(attribute(eventsOf(aRun()).events[2], 'tool_failure')).toBe('error');
  });

  it('the events of a run are the same bytes for the same run and time, and another trace for another time', () => {
    expect(JSON.stringify(eventsOf(aRun()))).toBe(JSON.stringify(eventsOf(aRun())));
    expect(eventsOf(aRun(), START + 1).trace_id).not.toBe(eventsOf(aRun()).trace_id);
  });

  it('the events of a run keep every step within the run, in order of its beginning', () => {
    for (const run of sample) {
      const plan = planRun(run, words);
      const offsets = plan.steps.map((step) => step.offset_ms);
      expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
      for (const step of plan.steps) expect(step.offset_ms + step.duration_ms).toBeLessThanOrEqual(plan.duration_ms);
    }
  });

  it('ingest accepts every event of the sample', () => {
    for (const run of sample)
      for (const { format, body } of eventsOf(run).events)
        expect(checkEvent(format, JSON.parse(JSON.stringify(body)))).toMatchObject({ ok: true });
  });
});

describe('runs of a file', () => {
  it('the sample has runs of several agents and of every outcome', () => {
    expect(new Set(sample.map(agentOf)).size).toBeGreaterThanOrEqual(5);
    expect(new Set(sample.map((run) => eventsOf(run).outcome))).toEqual(new Set(['success', 'error', 'timeout']));
  });

  it('a run without an agent is named by the heading of its system prompt', () => {
    expect(agentOf(aRun())).toBe('airline-agent');
    expect(agentOf(aRun({ traj: [{ role: 'user', content: '# Heading' }] }))).toBe('agent');
    expect(agentOf(aRun({ info: { agent: 'mine' } }))).toBe('mine');
  });

  it('an invalid run is reported by its field', () => {
    expect(() => parseRuns('[{"task_id":1,"reward":1,"traj":[{"role":"robot"}]}]')).toThrow(/0\.traj\.0\.role/);
    expect(() => parseRuns('[]')).toThrow(RunsFileError);
    expect(() => parseRuns('{')).toThrow(/is not JSON/);
  });
});

describe('outline of a tree', () => {
  const span = (
    span_id: string,
    parent_span_id: string | null,
    started_at: string,
    change: Partial<OutlineSpan> = {},
  ): OutlineSpan => ({
    span_id,
    parent_span_id,
    name: span_id,
    outcome: 'success',
    duration_ms: 1200,
    input_tokens: 0,
    output_tokens: 0,
    started_at,
    attributes: { span_kind: 'event' },
    ...change,
  });

  it('the outline shows spans below their parents in order of time, and those of unknown parents at the top', () => {
    const lines = outline(
      [
        span('root', null, '1'),
        span('late', 'root', '4'),
        span('early', 'root', '2'),
        span('inner', 'early', '3'),
        span('lost', 'gone', '5'),
      ],
      10,
    );
    expect(lines.map((line) => line.replace(/ \(.*/, ''))).toEqual(['root', '  early', '    inner', '  late', 'lost']);
  });

  it('the outline shows what a turn answered or called, and what failed', () => {
    const call = span('gpt-4o', null, '1', {
      outcome: 'error',
      input_tokens: 10,
      output_tokens: 2,
      response: '',
      attributes: { span_kind: 'llm', tool_calls: [{ function: { name: 'find_user' } }] },
    });
    expect(outline([call], 10)).toEqual(['llm gpt-4o ERROR (1.2 s, 10 → 2 tokens): calls find_user']);
  });

  it('the outline says how many lines it omits', () => {
    expect(
      outline(
        ['a', 'b', 'c', 'd'].map((id) => span(id, null, id)),
        3,
      ).at(-1),
    ).toBe('… and 2 more');
  });
});
