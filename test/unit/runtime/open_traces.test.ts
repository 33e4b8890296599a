import { describe, expect, it } from 'vitest';
import { addSpan, emptyTrace } from '../../../pipeline/domain/traces/trace_state.ts';
import { JudgedInputs } from '../../../pipeline/judging/rule_inputs.ts';
import type { Cells } from '../../../sql/client/native_block.ts';
import { OpenTraces, type TraceBookLimits } from '../../../pipeline/traces/open_traces.ts';
import { aSpan, anEvent } from '../../support/spans.ts';
import { tracesOf } from '../../support/store.ts';

const limits: TraceBookLimits = { graceMs: 1000, idleMs: 30_000, openMax: 100, doneMax: 10, judgedFromStoreMax: 10 };
const book = (over: Partial<TraceBookLimits> = {}): OpenTraces => new OpenTraces(0, { ...limits, ...over });
const SPANS_CELL = 13;
const COST_CELL = 16;
const signOf = (wire: Cells): unknown => wire.at(-1);

describe('open traces', () => {
  it('the book of open traces writes one row for a new trace and a pair for each change', () => {
    const traces = book();
    traces.apply(anEvent(5));
    const first = traces.takeRows();
    expect(first.map(({ wire }) => signOf(wire))).toEqual([1]);
    traces.apply(anEvent(6, aSpan({ parent_span_id: 'spn_x' })));
    traces.apply(anEvent(7, aSpan({ parent_span_id: 'spn_x' })));
    const second = traces.takeRows();
    expect(second.map(({ wire }) => signOf(wire))).toEqual([-1, 1]);
    expect(second[0]?.wire.slice(0, -1)).toEqual(first[0]?.wire.slice(0, -1));
    expect(second[1]?.wire[SPANS_CELL]).toBe(3);
    expect(traces.takeRows()).toEqual([]);
  });

  it('the book of open traces reports trace.started once, and trace.completed after the grace only when nothing else arrived', () => {
    const traces = book();
    traces.apply(anEvent(1, aSpan({ received_at: 10_000 })));
    expect(traces.takeEvents().map(({ event }) => event)).toEqual(['trace.started']);
    traces.apply(anEvent(2, aSpan({ received_at: 10_900, parent_span_id: 'p' })));
    traces.takeRows();
    traces.tick(11_500);
    expect(traces.takeEvents()).toEqual([]);
    traces.tick(11_900);
    const [told] = traces.takeEvents();
    expect(told?.payload).toMatchObject({
      event: 'trace.completed',
      trace_id: 'trc_1',
      outcome: 'success',
      input_tokens: 20,
      output_tokens: 10,
      cost_usd: 0.00015,
      judge_scores: {},
    });
    traces.tick(99_000);
    expect(traces.takeEvents()).toEqual([]);
  });

  it('the book of open traces completes traces of a former owner in bounded numbers if judges read them, others at once', () => {
    const inputs = new JudgedInputs((org_id) => org_id === 'org_a', 1_000_000);
    const traces = new OpenTraces(0, { ...limits, judgedFromStoreMax: 2 }, undefined, inputs);
    for (const trace of tracesOf(
      ['org_a', 'org_b'].flatMap((org_id) =>
        ['1', '2', '3', '4', '5'].map((trace_id) => aSpan({ org_id, trace_id, parent_span_id: 'p' })),
      ),
    ))
      traces.restore({ state: trace, version: 3 }, { open: true, announce: false, now: 10_000 });
    traces.apply(anEvent(4, aSpan({ trace_id: 'new', received_at: 10_000 })));
    const completed = (): string[] =>
      traces
        .takeEvents()
        .flatMap(({ event, org_id, trace_id }) => (event === 'trace.completed' ? [`${org_id} ${trace_id}`] : []));
    traces.tick(60_000, true);
    expect(completed()).toEqual(['org_a new', 'org_b 1', 'org_b 2', 'org_b 3', 'org_b 4', 'org_b 5']);
    traces.tick(60_000);
    expect(completed()).toEqual(['org_a 1', 'org_a 2']);
    expect(traces.completedThrough(9)).toBe(2);
    traces.tick(60_000);
    expect(completed()).toEqual(['org_a 3', 'org_a 4']);
    traces.tick(60_000);
    expect(completed()).toEqual(['org_a 5']);
    expect(traces.completedThrough(9)).toBe(9);
  });

  it('the book of open traces waits the idle time for a trace without a root', () => {
    const traces = book();
    traces.apply(anEvent(1, aSpan({ received_at: 10_000, parent_span_id: 'p' })));
    traces.takeEvents();
    traces.tick(39_999);
    expect(traces.takeEvents()).toEqual([]);
    traces.tick(40_000);
    expect(traces.takeEvents().map(({ event }) => event)).toEqual(['trace.completed']);
  });

  it('the book of open traces adds a late event to the rows without reporting again', () => {
    const traces = book();
    traces.apply(anEvent(1, aSpan({ received_at: 10_000 })));
    traces.takeRows();
    traces.tick(20_000);
    traces.takeEvents();
    traces.apply(anEvent(2, aSpan({ received_at: 20_500, parent_span_id: 'p', outcome: 'error' })));
    const rows = traces.takeRows();
    expect(rows.map(({ wire }) => signOf(wire))).toEqual([-1, 1]);
    expect(rows[1]?.wire).toContain('error');
    traces.tick(99_000);
    expect(traces.takeEvents()).toEqual([]);
  });

  it('the book of open traces skips what a restored row contains already, and writes its pair for what is new', () => {
    const origin = book();
    origin.apply(anEvent(4));
    const stored = origin.takeRows()[0]?.wire ?? [];
    const state = { ...stateOf(origin), trace_id: 'trc_1' };
    const traces = book();
    traces.restore({ state, version: 4 }, { open: true, announce: false, now: 0 });
    traces.apply(anEvent(4));
    expect(traces.takeRows()).toEqual([]);
    traces.apply(anEvent(5));
    const rows = traces.takeRows();
    expect(rows[0]?.wire).toEqual([...stored.slice(0, -1), -1]);
    expect(rows[1]?.wire[SPANS_CELL]).toBe(2);
  });

  it('the book of open traces completes a backfilled trace at once, with rows but without events, also when it is restored', () => {
    const traces = book();
    traces.apply({ ...anEvent(4), backfill: true });
    expect(traces.takeRows()).toHaveLength(1);
    expect(traces.completedThrough(4)).toBe(4);
    traces.apply(anEvent(5));
    traces.tick(99_000);
    expect(traces.takeEvents()).toEqual([]);
    const restored = book();
    restored.restore(
      { state: { ...stateOf(traces), backfilled: true }, version: 5 },
      { open: true, announce: true, now: 0 },
    );
    restored.tick(99_000);
    expect(restored.takeEvents()).toEqual([]);
  });

  it('the book of open traces holds completed_through back for open traces, not for complete ones', () => {
    const traces = book();
    traces.apply(anEvent(7, aSpan({ trace_id: 'a', received_at: 1000 })));
    traces.apply(anEvent(9, aSpan({ trace_id: 'b', received_at: 2000 })));
    expect(traces.completedThrough(9)).toBe(6);
    traces.tick(2500);
    expect(traces.completedThrough(9)).toBe(8);
    traces.tick(3500);
    expect(traces.completedThrough(9)).toBe(9);
  });

  it('the book of open traces completes the trace that was quiet longest when too many are open', () => {
    const traces = book({ openMax: 2 });
    for (const [seq, id] of ['a', 'b', 'c'].entries())
      traces.apply(anEvent(seq + 1, aSpan({ trace_id: id, received_at: 1000 + seq })));
    traces.takeEvents();
    traces.tick(0);
    expect(traces.takeEvents().map(({ event, trace_id }) => [event, trace_id])).toEqual([['trace.completed', 'a']]);
    expect(traces.openCount).toBe(2);
  });

  it('the book of open traces asks for the row of a trace that it has forgotten, and for no other', () => {
    const traces = book({ doneMax: 1 });
    for (const id of ['a', 'b', 'c']) traces.apply(anEvent(1, aSpan({ trace_id: id, received_at: 1000 })));
    traces.tick(9000);
    traces.takeRows();
    traces.takeRows();
    const asked = traces.missing(['a', 'b', 'c', 'new'].map((trace_id) => ({ org_id: 'org_a', trace_id })));
    expect(asked.map(({ trace_id }) => trace_id)).toEqual(['a', 'b']);
  });

  it('the book of open traces forgets no trace whose rows wait to be landed, however many batches ago they were taken', () => {
    const traces = book({ doneMax: 1 });
    const ids = ['a', 'b', 'c'];
    for (const [at, id] of ids.entries()) traces.apply(anEvent(at + 1, aSpan({ trace_id: id, received_at: 1000 })));
    traces.tick(9000);
    const asked = (): string[] =>
      traces.missing(ids.map((trace_id) => ({ org_id: 'org_a', trace_id }))).map(({ trace_id }) => trace_id);
    for (let batch = 0; batch < 3; batch += 1) traces.takeRows(0);
    expect(asked()).toEqual([]);
    traces.takeRows(1);
    expect(asked()).toEqual(['a']);
    traces.takeRows(3);
    expect(asked()).toEqual(['a', 'b']);
  });

  it('the book of open traces keeps what was restored for a batch until the batch is applied, however much it is', () => {
    const traces = book({ doneMax: 1 });
    const ids = ['a', 'b', 'c'];
    const stored = ids.map((trace_id) => {
      const state = emptyTrace(aSpan({ trace_id }));
      addSpan(state, aSpan({ trace_id }), true);
      return { state, version: 1 };
    });
    for (const trace of stored) traces.restore(trace, { open: false, announce: false, now: 0 });
    for (const trace_id of ids) traces.apply(anEvent(2, aSpan({ trace_id })));
    const rows = traces.takeRows();
    expect(rows.map(({ trace_id, wire }) => [trace_id, signOf(wire), wire[SPANS_CELL]])).toEqual(
      ids.flatMap((id) => [
        [id, -1, 1],
        [id, 1, 2],
      ]),
    );
    expect(traces.takeEvents()).toEqual([]);
    traces.takeRows();
    expect(traces.missing(ids.map((trace_id) => ({ org_id: 'org_a', trace_id })))).toHaveLength(2);
  });

  it('the book of open traces forgets no trace whose row lands beside the next batch, so that a late event in it begins no second row', () => {
    const traces = book({ doneMax: 1 });
    for (const id of ['a', 'b', 'c']) traces.apply(anEvent(1, aSpan({ trace_id: id, received_at: 1000 })));
    traces.tick(9000);
    traces.takeRows();
    const late = anEvent(2, aSpan({ trace_id: 'a', received_at: 9000, parent_span_id: 'p' }));
    expect(traces.missing([late])).toEqual([]);
    traces.apply(late);
    const rows = traces.takeRows();
    expect(rows.map(({ wire }) => [signOf(wire), wire[SPANS_CELL]])).toEqual([
      [-1, 1],
      [1, 2],
    ]);
  });

  it('the book of open traces corrects the cost of a trace by a pair, once, and creates none for an unknown trace', () => {
    const traces = book();
    traces.apply(anEvent(5, aSpan({ cost_pico_usd: 100n })));
    const [before] = traces.takeRows();
    traces.correct('org_a', 'trc_1', { log_seq: 6, cost_pico_usd: -40n, heardAt: 0 });
    traces.correct('org_a', 'trc_1', { log_seq: 6, cost_pico_usd: 1n, heardAt: 0 });
    traces.correct('org_a', 'trc_unknown', { log_seq: 6, cost_pico_usd: 1n, heardAt: 0 });
    const rows = traces.takeRows();
    expect(
      rows.map(({ trace_id, version, wire }) => [trace_id, version, signOf(wire), wire[SPANS_CELL], wire[COST_CELL]]),
    ).toEqual([
      ['trc_1', 6, -1, 1, 100n],
      ['trc_1', 6, 1, 1, 61n],
    ]);
    expect(rows[0]?.wire.slice(0, -1)).toEqual(before?.wire.slice(0, -1));
    const again = book();
    const state = emptyTrace(aSpan());
    again.restore({ state, version: 6 }, { open: false, announce: false, now: 0 });
    again.correct('org_a', 'trc_1', { log_seq: 6, cost_pico_usd: 5n, heardAt: 0 });
    expect(again.takeRows()).toEqual([]);
    again.correct('org_a', 'trc_1', { log_seq: 7, cost_pico_usd: 5n, heardAt: 0 });
    expect(again.takeRows()).toHaveLength(2);
    expect(again.takeEvents()).toEqual([]);
  });

  it('the book of open traces keeps an open trace that is corrected behind those that are older in the log', () => {
    const traces = book();
    traces.apply(anEvent(1, aSpan({ trace_id: 'a', received_at: 1000 })));
    traces.apply(anEvent(2, aSpan({ trace_id: 'b', received_at: 1000 })));
    traces.correct('org_a', 'a', { log_seq: 3, cost_pico_usd: 1n, heardAt: 1500 });
    traces.takeRows();
    expect(traces.completedThrough(9)).toBe(1);
    traces.tick(2100);
    expect(traces.completedThrough(9)).toBe(2);
    traces.tick(2500);
    expect(traces.completedThrough(9)).toBe(9);
  });

  it('the book of open traces computes outcome, root, agent and tags as defined', () => {
    const traces = book();
    traces.apply(
      anEvent(1, aSpan({ parent_span_id: 'p', agent_id: 'first', tags: ['x'], outcome: 'timeout', started_at: 900 })),
    );
    traces.apply(
      anEvent(2, aSpan({ agent_id: 'root', tags: ['y', 'x'], name: 'late root', started_at: 800, ended_at: 5000 })),
    );
    traces.apply(anEvent(3, aSpan({ agent_id: 'other', name: 'later root', started_at: 1200, ended_at: 1300 })));
    const row = traces.takeRows()[0]?.wire ?? [];
    expect(row).toContain('late root');
    expect(row).toContain('root');
    expect(row).toContain('timeout');
    expect(row).toContainEqual(['x', 'y']);
    const [startedAt, endedAt] = [row[3], row[4]];
    expect([startedAt, endedAt]).toEqual([800, 1_000_500]);
  });
});

function stateOf(traces: OpenTraces) {
  // The state as the store would return it: from the row's cells.
  traces.apply(anEvent(4));
  const row = traces.takeRows().at(-2)?.wire as [
    string,
    number,
    string,
    number,
    number,
    number,
    string,
    string,
    string,
    'success',
    string,
    string,
    string[],
    number,
    number,
    number,
    string,
    boolean,
    number,
    boolean,
    string[],
    string[],
    string[],
    string[],
    string[],
    boolean,
  ];
  return {
    org_id: row[0],
    trace_id: row[2],
    anchor: row[1],
    started_at: row[3],
    ended_at: row[4],
    root_at: row[5],
    root_span_id: row[6],
    root_span_name: row[7],
    agent_id: row[8],
    outcome: row[9],
    session_id: row[10],
    user_id: row[11],
    tags: row[12],
    spans: row[13],
    input_tokens: row[14],
    output_tokens: row[15],
    cost_pico_usd: 75_000_000n,
    sampled: row[17],
    forced_from: row[18],
    described: row[19],
    models: row[20],
    source_formats: row[21],
    departments: row[22],
    realms: row[23],
    prompts: row[24],
    backfilled: row[25],
  };
}
