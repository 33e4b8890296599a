import { describe, expect, it } from 'vitest';
import { durationOf, type Scenario, scenarioEvents, type Step } from '../../../ops/demo/scenario.ts';
import { dailyRuns } from '../../../ops/demo/daily.ts';
import { helpDesk } from '../../../ops/demo/help_desk.ts';
import { scenarios } from '../../../ops/demo/scenarios.ts';
import { checkEvent } from '../../../schemas/formats/formats.ts';

const AT = Date.UTC(2026, 0, 31, 12);
interface Sent {
  span_id: string;
  parent_span_id?: string;
  name: string;
  outcome: string;
  started_at: string;
  ended_at: string;
}
const sentOf = (scenario: Scenario): Sent[] =>
  scenarioEvents(scenario, AT, 'load').events.flatMap(({ body }) => body['events'] as Sent[]);
const all = [
  ...scenarios(),
  ...dailyRuns().map(({ scenario }) => scenario),
  ...Array.from({ length: 34 }, (_, index) => helpDesk(index)),
];

describe('scenarios of the demonstration', () => {
  it('every event is one that the ingest endpoint accepts, in batches of at most 1,000', () => {
    for (const scenario of all)
      for (const { format, body } of scenarioEvents(scenario, AT, 'load').events) {
        expect((body['events'] as unknown[]).length).toBeLessThanOrEqual(1000);
        for (const event of body['events'] as unknown[]) expect(checkEvent(format, event)).toMatchObject({ ok: true });
      }
  });

  it('a scenario has one root, and every other span lies within the time of its parent', () => {
    for (const scenario of all) {
      const sent = sentOf(scenario);
      const byId = new Map(sent.map((event) => [event.span_id, event]));
      expect(byId.size).toBe(sent.length);
      expect(sent.filter((event) => event.parent_span_id === undefined)).toHaveLength(1);
      for (const event of sent) {
        const parent = byId.get(event.parent_span_id ?? event.span_id);
        expect(parent).toBeDefined();
        expect(event.started_at >= (parent?.started_at ?? '')).toBe(true);
        expect(event.ended_at <= (parent?.ended_at ?? '')).toBe(true);
      }
    }
  });

  it('one scenario has 2,000 spans, and fails in its last step', () => {
    const large = scenarios()
      .map(sentOf)
      .filter((sent) => sent.length === 2000);
    expect(large).toHaveLength(1);
    const leaves = large[0]?.filter(
      ({ outcome, span_id }) => outcome === 'error' && !large[0]?.some((child) => child.parent_span_id === span_id),
    );
    expect(leaves?.map(({ name }) => name)).toEqual(['store_page']);
  });

  it('the same scenario at the same time gives the same events, and other ids at another time', () => {
    const [first] = scenarios();
    if (first === undefined) throw new Error('no scenario');
    expect(scenarioEvents(first, AT, 'load')).toEqual(scenarioEvents(first, AT, 'load'));
    expect(scenarioEvents(first, AT + 1, 'load').trace_id).not.toBe(scenarioEvents(first, AT, 'load').trace_id);
  });

  it('steps that run in parallel take as long as the longest, others as long as all together', () => {
    const step = (own_ms: number, more: Partial<Step> = {}): Step => ({ kind: 'tool', name: 'a', own_ms, ...more });
    const steps = [step(10), step(30, { wait_ms: 5 })];
    expect(durationOf(step(1, { steps }))).toBe(46);
    expect(durationOf(step(1, { steps, parallel: true }))).toBe(36);
  });
});
