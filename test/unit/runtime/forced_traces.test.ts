// force_trace without tail sampling: later events of the trace are kept too, whatever is replayed
// and whichever worker is killed.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { keptByRate, PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import { type Cut, GRACE_MS, IDLE_MS, MODEL_PARTITIONS, type ModelEvent, TailModel } from '../../support/tail_model.ts';

const thinned = Array.from({ length: 100 }, (_, i) => `trace-${i}`).filter(
  (id) => !keptByRate(id, PROFILE_RATE.balanced),
);
const nth = (at: number): string => thinned[at % thinned.length] ?? '';
const FORCE: ModelEvent['span'] = { attributes: { force_trace: true }, parent_span_id: 'spn_root' };

let serial = 0;
function event(trace_id: string, span: ModelEvent['span'] = { parent_span_id: 'spn_root' }): ModelEvent {
  serial += 1;
  return { n: serial, trace_id, partition: Number(trace_id.split('-')[1]) % MODEL_PARTITIONS, span };
}
const rowsOf = (model: TailModel, trace_id: string) =>
  model.spans
    .filter((row) => row.trace_id === trace_id)
    .sort((a, b) => a.log_seq - b.log_seq || a.log_index - b.log_index);
const sampledOf = (model: TailModel, trace_id: string): boolean[] =>
  rowsOf(model, trace_id).map(({ sampled }) => sampled);
const newModel = (): TailModel => new TailModel({}, false);

describe('an event with force_trace, each event being decided by itself', () => {
  const [a, b] = [nth(0), nth(1)];

  it('an event with force_trace keeps later events of its trace, and none of another trace', async () => {
    const model = newModel();
    for (const span of [undefined, FORCE, undefined]) {
      model.publish([event(a, span)]);
      model.publish([event(b)]);
      await model.step(5);
    }
    model.publish([event(a), event(b)]);
    await model.step(5);
    expect([sampledOf(model, a), sampledOf(model, b)]).toEqual([
      [false, true, true, true],
      [false, false, false, false],
    ]);
    expect(model.texts).toHaveLength(3);
  });

  it('an event with force_trace keeps every event of its trace in the same message, in any order', async () => {
    const model = newModel();
    model.publish([event(a), event(a, FORCE), event(a)]);
    await model.step(5);
    expect(sampledOf(model, a)).toEqual([true, true, true]);
  });

  it('an event with force_trace keeps late events when its trace was complete and forgotten, and after a takeover', async () => {
    const model = newModel();
    model.publish([event(a, { attributes: { force_trace: 'true' } }), event(b)]);
    await model.step(5);
    model.now += 2 * GRACE_MS;
    // More traces come and go than are remembered.
    model.publish(Array.from({ length: 20 }, (_, at) => event(nth(2 + at), {})));
    await model.step(5);
    model.now += 2 * GRACE_MS;
    await model.step(0);
    model.publish([event(a), event(b)]);
    await model.step(5);
    model.writeCheckpoints();
    model.kill();
    model.publish([event(a), event(b)]);
    await model.finish();
    expect([sampledOf(model, a), sampledOf(model, b)]).toEqual([
      [true, true, true],
      [false, false, false],
    ]);
  });

  it('an event with force_trace is decided the same when the log is replayed after a kill, whatever of it had landed', async () => {
    const flags = fc.array(fc.boolean(), { minLength: 1, maxLength: 5 });
    const cut: fc.Arbitrary<Cut> = fc.record({ spans: flags, texts: flags, traces: fc.boolean(), usage: fc.boolean() });
    const act = fc.oneof(
      fc.record({
        publish: fc.array(fc.record({ trace: fc.nat(4), force: fc.integer({ min: 0, max: 5 }).map((n) => n === 0) }), {
          minLength: 1,
          maxLength: 5,
        }),
      }),
      fc.record({ step: fc.integer({ min: 0, max: 4 }), cut: fc.option(cut, { freq: 2, nil: null }) }),
      fc.constantFrom<{ also: 'checkpoint' | 'kill' | 'wait' }>(
        { also: 'checkpoint' },
        { also: 'kill' },
        { also: 'wait' },
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 30 }), async (acts) => {
        const model = newModel();
        const forcing = new Set<string>();
        for (const one of acts) {
          if ('publish' in one) {
            const events = one.publish.map(({ trace, force }) => event(nth(trace), force ? FORCE : undefined));
            for (const { n, span } of events) if (span === FORCE) forcing.add((n + 1).toString(16).padStart(16, '0'));
            model.publish(events);
          } else if ('step' in one) await model.step(one.step, one.cut);
          else if (one.also === 'checkpoint') model.writeCheckpoints();
          else if (one.also === 'kill') model.kill();
          else model.now += 2 * IDLE_MS;
        }
        await model.finish();
        for (const id of thinned.slice(0, 5)) {
          const rows = rowsOf(model, id);
          const from = Math.min(...rows.filter(({ hex }) => forcing.has(hex)).map(({ log_seq }) => log_seq));
          expect(rows.map(({ sampled }) => sampled)).toEqual(rows.map(({ log_seq }) => log_seq >= from));
        }
        const full = model.spans.filter(({ sampled }) => sampled);
        expect(model.texts.map(({ key }) => key).sort()).toEqual(full.map(({ key }) => key).sort());
      }),
      { numRuns: 300 },
    );
  });
});
