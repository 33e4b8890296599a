import { eventIdentity } from '../../../pipeline/domain/traces/event_identity.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { emptyDraft, findingOf } from '../../../pipeline/domain/judging/judged_draft.ts';
import { keptByRate, PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import { bufferedAmong } from '../../../pipeline/traces/tail_sampling.ts';
import { traceKey } from '../../../pipeline/domain/traces/ids.ts';
import { TailBuffer } from '../../../pipeline/traces/tail_buffer.ts';
import { anEvent, aSpan } from '../../support/spans.ts';
import {
  type Cut,
  GRACE_MS,
  SLOW_MS,
  IDLE_MS,
  MODEL_PARTITIONS,
  type ModelEvent,
  TailModel,
} from '../../support/tail_model.ts';

const RATE = PROFILE_RATE.balanced;
const ids = Array.from({ length: 400 }, (_, i) => `trace-${i}`);
/** Traces that the rate keeps, and those that it does not. */
const kept = ids.filter((id) => keptByRate(id, RATE));
const thinned = ids.filter((id) => !keptByRate(id, RATE));
const nth = (list: readonly string[], at: number): string => list[at % list.length] ?? '';
const partitionOf = (trace_id: string): number => Number(trace_id.split('-')[1]) % MODEL_PARTITIONS;

let serial = 0;
const event = (trace_id: string, span: ModelEvent['span'] = {}): ModelEvent => {
  serial += 1;
  return { n: serial, trace_id, partition: partitionOf(trace_id), span };
};
const child = (trace_id: string, span: ModelEvent['span'] = {}): ModelEvent =>
  event(trace_id, { parent_span_id: 'spn_root', ...span });

const rowsOf = (model: TailModel, trace_id: string) =>
  model.spans
    .filter((row) => row.trace_id === trace_id)
    .sort((a, b) => a.log_seq - b.log_seq || a.log_index - b.log_index);
const sampledOf = (model: TailModel, trace_id: string): boolean[] =>
  rowsOf(model, trace_id).map(({ sampled }) => sampled);

describe('tail sampling', () => {
  const [a, b, c] = [nth(thinned, 0), nth(thinned, 1), nth(thinned, 2)];

  it('tail sampling buffers a trace that no rule keeps until it is complete, and then stores a summary', async () => {
    const model = new TailModel();
    model.publish([event(a), child(a)]);
    await model.step(5);
    expect([model.spans, model.texts, model.traces, model.heldTraces]).toEqual([[], [], [], 1]);
    expect(model.usage.map(({ events }) => events)).toEqual([2]);
    model.now += GRACE_MS;
    await model.step(0);
    expect(sampledOf(model, a)).toEqual([false, false]);
    expect(model.texts).toEqual([]);
    expect(model.traces.map(({ sign, sampled, trace }) => [sign, sampled, trace.state.spans])).toEqual([[1, false, 2]]);
    expect([model.heldTraces, model.completed.has(a)]).toEqual([0, true]);
  });

  it('tail sampling passes on at once what the rate keeps', async () => {
    const id = nth(kept, 0);
    const model = new TailModel();
    model.publish([child(id), child(id)]);
    await model.step(5);
    expect([sampledOf(model, id), model.texts.length, model.heldTraces]).toEqual([[true, true], 2, 0]);
  });

  it.each<[string, ModelEvent['span']]>([
    ['an error', { outcome: 'error' }],
    ['a timeout', { outcome: 'timeout' }],
    ['a slow span', { started_at: 1_000_000, ended_at: 1_005_001 }],
    ['a loop', { name: 'Loop' }],
    ['a tool error', { name: 'tool-error' }],
    ['a stumble', { attributes: { event_type: 'stumble' } }],
    ['a judge', { name: 'judge' }],
    ['a stat gate', { name: 'stat gate' }],
    ['MCP auth', { attributes: { event_type: 'MCP-Auth' } }],
    ['a forced trace', { attributes: { force_trace: true } }],
  ])('tail sampling keeps the whole trace with its texts for %s in its last span', async (_, span) => {
    const model = new TailModel();
    model.publish([event(a), child(a), event(b)]);
    await model.step(5);
    model.publish([child(a, span)]);
    await model.step(5);
    expect([sampledOf(model, a), model.texts.length]).toEqual([[true, true, true], 3]);
    expect(sampledOf(model, b)).toEqual([]);
  });

  it('tail sampling keeps a trace whose total duration is too long, though none of its spans is', async () => {
    const model = new TailModel();
    const at = model.now;
    model.publish([
      event(a, { started_at: at, ended_at: at + 2000 }),
      child(a, { started_at: at + 3000, ended_at: at + 5000 }),
    ]);
    model.publish([
      event(b, { started_at: at, ended_at: at + 2000 }),
      child(b, { started_at: at + 3000, ended_at: at + 5001 }),
    ]);
    await model.step(5);
    expect([sampledOf(model, a), sampledOf(model, b)]).toEqual([[], [true, true]]);
  });

  it('tail sampling decides late spans as their trace, also when it was forgotten, and keeps a late error and what follows', async () => {
    const model = new TailModel();
    const id = nth(kept, 1);
    model.publish([event(a), event(b, { outcome: 'error' }), event(id)]);
    await model.step(5);
    model.now += 2 * GRACE_MS;
    await model.step(0);
    // More traces come and go than are remembered.
    model.publish(thinned.slice(3, 40).map((other) => event(other)));
    await model.step(5);
    model.now += 2 * GRACE_MS;
    await model.step(0);
    model.publish([child(a), child(b), child(id)]);
    await model.step(5);
    expect([a, b, id].map((trace) => sampledOf(model, trace))).toEqual([
      [false, false],
      [true, true],
      [true, true],
    ]);
    model.publish([child(a, { outcome: 'error' }), child(a)]);
    await model.step(5);
    expect(sampledOf(model, a)).toEqual([false, false, true, true]);
  });

  it('tail sampling shows judges all of a buffered trace, though they were added in the middle and none of it has a row', async () => {
    const model = new TailModel();
    model.publish([event(a, { prompt: 'first question' })]);
    await model.step(5);
    model.hasJudges = true;
    model.publish([child(a, { prompt: 'second question' })]);
    await model.step(5);
    // The memory for judges is zero here, yet buffered traces stay.
    await model.step(0);
    model.now += GRACE_MS;
    await model.step(0);
    expect(
      model.judged.map(({ draft, stored_through, state }) => [
        findingOf(draft ?? emptyDraft()).prompt,
        stored_through,
        state.spans,
      ]),
    ).toEqual([['first question', 0, 2]]);
  });

  it('tail sampling decides the oldest trace of any partition when it has no slot left', async () => {
    const model = new TailModel({ slots: 2 });
    model.publish([child(a)]);
    model.publish([child(b)]);
    await model.step(5);
    expect(model.heldTraces).toBe(2);
    model.publish([child(c)]);
    await model.step(5);
    expect([a, b, c].map((id) => sampledOf(model, id))).toEqual([[false], [], []]);
    model.publish([child(a), child(b, { outcome: 'error' }), child(c)]);
    await model.step(5);
    expect([a, b, c].map((id) => sampledOf(model, id))).toEqual([[false, false], [true, true], []]);
    expect(model.completed.size).toBe(0);
  });

  it('tail sampling does so too when it has no memory left, and for a trace that is too large by itself', async () => {
    const model = new TailModel({ bytes: 16_000, traceBytes: 20_000 });
    const large = 'x'.repeat(2500);
    model.publish([child(a, { prompt: large })]);
    model.publish([child(b, { prompt: large })]);
    await model.step(5);
    expect([sampledOf(model, a), model.heldTraces]).toEqual([[], 2]);
    model.publish([child(c, { prompt: large })]);
    await model.step(5);
    expect([a, b, c].map((id) => sampledOf(model, id))).toEqual([[false], [], []]);
    model.publish([child(c, { prompt: large.repeat(3) })]);
    await model.step(5);
    expect([a, b, c].map((id) => sampledOf(model, id))).toEqual([[false], [], [false, false]]);
  });

  it('tail sampling bounds how much of the log is replayed after a crash, and how long a busy trace waits', async () => {
    const read = new TailModel({ read: { events: 2, bytes: 1e9 } });
    read.publish([child(a)]);
    await read.step(1);
    for (const id of kept.slice(0, 3)) read.publish([child(id)]);
    await read.step(4);
    expect(sampledOf(read, a)).toEqual([false]);
    const aged = new TailModel({ bufferMs: 3 * IDLE_MS });
    for (let i = 0; i < 5; i += 1) {
      aged.publish([child(a)]);
      await aged.step(5);
      aged.now += IDLE_MS - 1;
    }
    expect(sampledOf(aged, a)).toEqual([false, false, false, false, false]);
  });

  it('tail sampling moves no checkpoint past the oldest buffered event', async () => {
    const model = new TailModel();
    model.publish([child(nth(kept, 0))]);
    model.publish([child(a)]);
    const after = thinned.slice(3).filter((id) => partitionOf(id) === partitionOf(a));
    for (const id of after.slice(0, 5)) model.publish([child(id, { outcome: 'error' })]);
    await model.step(10);
    expect(model.settledThrough(partitionOf(a))).toBe(1);
    model.publish([child(a, { outcome: 'error' })]);
    await model.step(10);
    expect(model.settledThrough(partitionOf(a))).toBe(8);
  });

  it('tail sampling recognises a buffered trace after a crash, and decides it by all of its spans', async () => {
    const model = new TailModel();
    model.publish([event(a), child(b)]);
    await model.step(5);
    model.writeCheckpoints();
    model.kill();
    model.publish([child(a, { outcome: 'error' })]);
    await model.step(5);
    expect([sampledOf(model, a), sampledOf(model, b)]).toEqual([[true, true], []]);
    await model.finish();
    expect([sampledOf(model, b), model.usage.reduce((sum, { events }) => sum + events, 0)]).toEqual([[false], 3]);
  });

  it('tail sampling finishes an interrupted decision as it was begun', async () => {
    for (const first of [true, false]) {
      for (const isKept of [true, false]) {
        const model = new TailModel();
        model.publish([event(a), child(a), child(a)]);
        await model.step(5);
        const cut: Cut = { spans: [first, !first, false], texts: [false], traces: false, usage: false };
        if (isKept) model.publish([child(a, { outcome: 'error' })]);
        else model.now += GRACE_MS;
        await model.step(5, cut);
        expect(model.spans.length).toBeGreaterThan(0);
        await model.finish();
        expect(sampledOf(model, a)).toEqual(isKept ? [true, true, true, true] : [false, false, false]);
      }
    }
  });
});

describe('held traces', () => {
  const read = { events: 0, bytes: 0 };
  const hold = (traces: TailBuffer, log_seq: number, trace_id: string, hex: string) =>
    traces.add(
      traceKey('org_a', trace_id),
      { event: anEvent(log_seq, aSpan({ trace_id, event_hex: hex })), source: null },
      read,
    );

  it('buffered traces recognise a repeat of an event without a row, and no event as its own repeat', () => {
    const tail = new TailBuffer();
    hold(tail, 5, 'a', 'aa');
    const states = new Map([[0, { tail }]]);
    const ref = (log_seq: number, event_hex: string, trace_id = 'a', partition = 0) => ({
      org_id: 'org_a',
      trace_id,
      event_hex,
      partition,
      log_seq,
      log_index: 0,
    });
    expect(
      bufferedAmong(states, [ref(6, 'aa'), ref(5, 'aa'), ref(6, 'bb'), ref(6, 'aa', 'b'), ref(6, 'aa', 'a', 1)]),
    ).toEqual([eventIdentity({ org_id: 'org_a', event_hex: 'aa' })]);
  });

  it('buffered traces account for their memory', () => {
    const tail = new TailBuffer();
    hold(tail, 1, 'a', 'aa');
    const one = tail.bytes;
    expect(one).toBeGreaterThan(1000);
    hold(tail, 2, 'b', 'bb');
    hold(tail, 3, 'a', 'cc');
    expect([tail.size, tail.bytes, tail.oldest?.key]).toEqual([2, 3 * one, 'org_a a']);
    expect(tail.release('org_a a')?.events).toHaveLength(2);
    expect([tail.size, tail.bytes, tail.oldest?.key, tail.release('org_a a')]).toEqual([1, one, 'org_a b', undefined]);
  });
});

type Action =
  | { kind: 'publish'; events: { trace: number; error: boolean; root: boolean; again: boolean }[] }
  | { kind: 'step'; messages: number; cut: Cut | null }
  | { kind: 'checkpoint' }
  | { kind: 'kill' }
  | { kind: 'wait'; ms: number };

const flags = fc.array(fc.boolean(), { minLength: 1, maxLength: 7 });
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      events: fc.array(
        fc.record({
          trace: fc.nat(11),
          error: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
          root: fc.boolean(),
          again: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
        }),
        { minLength: 1, maxLength: 8 },
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      messages: fc.integer({ min: 0, max: 6 }),
      cut: fc.option(fc.record({ spans: flags, texts: flags, traces: fc.boolean(), usage: fc.boolean() }), {
        freq: 3,
        nil: null,
      }),
    }),
  },
  { weight: 2, arbitrary: fc.constant<Action>({ kind: 'checkpoint' }) },
  { weight: 1, arbitrary: fc.constant<Action>({ kind: 'kill' }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(1, GRACE_MS, IDLE_MS, 3 * IDLE_MS),
    }),
  },
);

describe('tail sampling, whatever comes and whoever dies', () => {
  it('tail sampling lands every event once and decides every trace once, whatever arrives and whichever worker dies', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 1, maxLength: 40 }),
        fc.constantFrom({}, { slots: 2 }, { bytes: 9000 }, { read: { events: 10, bytes: 1e9 } }, { bufferMs: IDLE_MS }),
        async (actions, limits) => {
          const model = new TailModel(limits);
          // Ten of the traces are summarised, two are kept by the rate.
          const traces = [...thinned.slice(0, 10), ...kept.slice(0, 2)];
          const sent = new Map<number, ModelEvent>();
          let n = 0;
          for (const one of actions) {
            if (one.kind === 'publish') {
              const events = one.events.map(({ trace, error, root, again }): ModelEvent => {
                const before = again ? sent.get(n) : undefined;
                if (before !== undefined) return before;
                n += 1;
                const trace_id = nth(traces, trace);
                const span = {
                  ...(root ? {} : { parent_span_id: 'spn_root' }),
                  ...(error ? { outcome: 'error' as const } : {}),
                };
                const fresh = { n, trace_id, partition: partitionOf(trace_id), span };
                sent.set(n, fresh);
                return fresh;
              });
              model.publish(events);
            } else if (one.kind === 'step') await model.step(one.messages, one.cut);
            else if (one.kind === 'checkpoint') model.writeCheckpoints();
            else if (one.kind === 'kill') model.kill();
            else model.now += one.ms;
          }
          await model.finish();
          holds(model, [...sent.values()]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

function holds(model: TailModel, sent: readonly ModelEvent[]): void {
  const hex = (n: number): string => (n + 1).toString(16).padStart(16, '0');
  expect(model.heldTraces).toBe(0);
  expect(model.spans.map((row) => row.hex).sort()).toEqual(sent.map(({ n }) => hex(n)).sort());
  const full = model.spans.filter(({ sampled }) => sampled);
  expect(model.texts.map((row) => row.hex).sort()).toEqual(full.map((row) => row.hex).sort());
  expect(model.usage.reduce((sum, { events }) => sum + events, 0)).toBe(sent.length);
  for (const [trace_id, events] of Map.groupBy(sent, (one) => one.trace_id)) {
    const rows = model.traces.filter(({ trace }) => trace.state.trace_id === trace_id);
    const sum = (of: (row: (typeof rows)[number]) => number): number =>
      rows.reduce((total, row) => total + row.sign * of(row), 0);
    const live = [sum(() => 1), sum(({ trace }) => trace.state.spans), sum((row) => Number(row.sampled))];
    const sampled = sampledOf(model, trace_id);
    expect(live).toEqual([1, events.length, Number(sampled.includes(true))]);
    expect(model.completed).toContain(trace_id);
    // Decided once: a summary until a rule applies and full from then on; full from the beginning
    // when the rule applied in time.
    const turn = sampled.includes(true) ? sampled.indexOf(true) : sampled.length;
    expect(sampled.slice(turn)).not.toContain(false);
    const errors = new Set(events.filter(({ span }) => span.outcome === 'error').map(({ n }) => hex(n)));
    const order = rowsOf(model, trace_id);
    if (keptByRate(trace_id, RATE)) expect(turn).toBe(0);
    else if (turn > 0 && turn < sampled.length) expect(errors).toContain(order[turn]?.hex);
    else if (turn === 0)
      expect(errors.size > 0 || sum(({ trace: { state } }) => state.ended_at - state.started_at) > SLOW_MS).toBe(true);
    for (const row of order) if (errors.has(row.hex)) expect(row.sampled).toBe(true);
  }
}
