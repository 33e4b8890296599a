// The stages after dedupe: what is kept in full, and what an event used.
import { describe, expect, it } from 'vitest';
import { dayOf } from '../../../pipeline/domain/time/days.ts';
import type { DecodedEvent, Outcome, SampledEvent, Stage } from '../../../pipeline/stage.ts';
import { createMeterStage } from '../../../pipeline/stages/meter.ts';
import { createSampleStage } from '../../../pipeline/stages/sample.ts';
import { anEvent, aSpan } from '../../support/spans.ts';

function emitted<In, Out>(stage: Stage<In, Out>, batch: readonly In[]): Out[] {
  return stage.run(batch).map((outcome: Outcome<Out>) => {
    if (outcome.kind !== 'emit') throw new Error(`not emitted: ${outcome.kind}`);
    return outcome.out;
  });
}

function decoded(count: number, span = aSpan()): DecodedEvent[] {
  return Array.from({ length: count }, (_, i) => anEvent(i + 1, span, { trace_id: `trc_${i}` }));
}

describe('sample', () => {
  it.each([
    ['full', true, 4000],
    ['balanced', true, 600],
    ['aggressive', true, 200],
    ['aggressive', false, 4000],
  ] as const)(
    'sampling with profile %s, enabled %s, stores about %i of 4000 traces in full',
    (profile, enabled, expected) => {
      const sampled = emitted(createSampleStage({ profile, enabled, slowMs: 5000 }), decoded(4000));
      const full = sampled.filter(({ retain }) => retain === 'full').length;
      expect(Math.abs(full - expected)).toBeLessThanOrEqual(expected === 4000 ? 0 : 6 * Math.sqrt(expected));
      expect(new Set(sampled.map(({ sample_reason }) => sample_reason))).toEqual(new Set(['profile']));
    },
  );

  it('sampling keeps what a rule keeps, and names the rule', () => {
    const stage = createSampleStage({ profile: 'aggressive', enabled: true, slowMs: 5000 });
    const sampled = emitted(stage, decoded(200, aSpan({ outcome: 'error' })));
    expect(sampled.every(({ retain, sample_reason }) => retain === 'full' && sample_reason === 'error')).toBe(true);
  });

  it('sampling gives all events of a trace one decision, and removes nothing from the event', () => {
    const stage = createSampleStage({ profile: 'balanced', enabled: true, slowMs: 5000 });
    const events = [1, 2, 3].flatMap((seq) =>
      Array.from({ length: 300 }, (_, i) => anEvent(seq, aSpan(), { trace_id: `trc_${i}` })),
    );
    const sampled = emitted(stage, events);
    const byTrace = Map.groupBy(sampled, ({ trace_id }) => trace_id);
    for (const group of byTrace.values()) expect(new Set(group.map(({ retain }) => retain)).size).toBe(1);
    expect(sampled.map(({ spans }) => spans)).toEqual(events.map(({ spans }) => spans));
  });
});

describe('meter', () => {
  const meter = createMeterStage();

  it('metering adds up the spans of an event, in the hour of its receipt and on the day it began', () => {
    const own = aSpan({
      agent_id: 'agent_1',
      started_at: Date.parse('2026-01-31T23:59:59.999Z'),
      received_at: Date.parse('2026-02-01T13:59:59.999Z'),
      department: 'support',
      realm: 'eu',
      attributes: { outcomes: { tickets: 2.5, leads: 'many', __proto__: 3 } },
      sandbox_seconds: 1.2345675,
      cost_pico_usd: 7n,
    });
    const child = aSpan({ input_tokens: 1, output_tokens: 2, cost_pico_usd: 5n, storage_bytes: 0 });
    const event: SampledEvent = anEvent(1, own, { spans: [own, child], retain: 'summary' });
    expect(emitted(meter, [event])[0]?.usage).toEqual({
      org_id: 'org_a',
      key_id: '',
      agent_id: 'agent_1',
      hour: Date.parse('2026-02-01T13:00:00Z'),
      day: dayOf(Date.parse('2026-01-31T00:00:00Z')),
      model: 'gpt-4o',
      department: 'support',
      realm: 'eu',
      last_received_at: Date.parse('2026-02-01T13:59:59.999Z'),
      events: 1,
      input_tokens: 11,
      output_tokens: 7,
      storage_bytes: 100,
      // Rounded as the store's column rounds: metered and stored amounts are equal.
      sandbox_micros: BigInt((1.2345675).toFixed(6).replace('.', '')),
      cost_pico_usd: 12n,
      outcomes: new Map([['tickets', 2_500_000_000_000n]]),
      correction: 0n,
    });
  });

  it('metering counts summarised events like full ones', () => {
    const [full, summary] = emitted(meter, [anEvent(1, aSpan()), anEvent(1, aSpan(), { retain: 'summary' })]);
    expect(full?.usage).toEqual(summary?.usage);
  });
});
