// Which organizations land in the bulk lane, and that rows land exactly once wherever a worker is killed
// between the two lanes.
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import '../../support/properties.ts';
import { ACTIVE_MS, BULK_COST, LandingLanes } from '../../../pipeline/landing/landing_lanes.ts';
import { LIMITS } from '../../../pipeline/limits.ts';
import { type Cut, MODEL_PARTITIONS, type ModelEvent, TailModel } from '../../support/tail_model.ts';

let now = 0;
let lanes = new LandingLanes(() => now);

beforeEach(() => {
  now = 1000;
  lanes = new LandingLanes(() => now);
});

/** Counts a batch of events by organization and bytes; returns the organizations in the bulk lane. */
function batch(...events: readonly [org_id: string, bytes: number][]): string[] {
  now += 100;
  lanes.begin();
  for (const [org_id, bytes] of events) lanes.addEvent(org_id, bytes);
  return events.filter(([org_id]) => lanes.isBulk(org_id)).map(([org_id]) => org_id);
}

describe('LandingLanes', () => {
  it('sends an organization with many bytes in a batch to the bulk lane while another organization sends little', () => {
    batch(['quiet', 1000]);
    expect(batch(['quiet', 1000], ['noisy', BULK_COST])).toEqual(['noisy']);
  });

  it('sends an organization whose events began in many months to the bulk lane, however small they are', () => {
    batch(['quiet', 1000]);
    lanes.begin();
    lanes.addEvent('spread', 1000);
    for (let month = 0; month < 12; month += 1) lanes.addSpan('spread', month * 31 * 86_400_000);
    expect(lanes.isBulk('spread')).toBe(true);
  });

  it('leaves an organization that is alone in the express lane, however much it sends', () => {
    for (let at = 0; at < 5; at += 1) expect(batch(['only', 4 * BULK_COST])).toEqual([]);
  });

  it('leaves organizations that send alike in the express lane, also when all send much', () => {
    for (let at = 0; at < 5; at += 1) expect(batch(['a', 1000], ['b', 2000])).toEqual([]);
    now += ACTIVE_MS;
    batch(['a', 2 * BULK_COST], ['b', 2 * BULK_COST]);
    expect(batch(['a', 2 * BULK_COST], ['b', 2 * BULK_COST])).toEqual([]);
  });

  it('protects an organization from its first event on', () => {
    expect(batch(['new', 1000], ['noisy', 2 * BULK_COST])).toEqual(['noisy']);
  });

  it('does not protect an organization that has not sent for a while', () => {
    batch(['quiet', 1000]);
    now += ACTIVE_MS;
    expect(batch(['noisy', 2 * BULK_COST])).toEqual([]);
  });

  it('keeps an organization in the bulk lane until all of its rows there have landed', () => {
    batch(['quiet', 1000]);
    batch(['noisy', 2 * BULK_COST]);
    const first = lanes.takeBulk();
    expect(batch(['noisy', 10])).toEqual(['noisy']);
    const second = lanes.takeBulk();
    lanes.landed(first);
    expect(batch(['noisy', 10])).toEqual(['noisy']);
    expect([...lanes.takeBulk()]).toEqual(['noisy']);
    lanes.landed(second);
    lanes.landed(new Set(['noisy']));
    expect(batch(['noisy', 10])).toEqual([]);
  });

  it('keeps an organization in the lane of a batch although its earlier rows land meanwhile', () => {
    batch(['quiet', 1000]);
    batch(['noisy', 2 * BULK_COST]);
    const waiting = lanes.takeBulk();
    expect(batch(['noisy', 10])).toEqual(['noisy']);
    lanes.landed(waiting);
    expect(lanes.isBulk('noisy')).toBe(true);
  });
});

describe('the bytes of a batch', () => {
  const { batch_bytes_max: whole, lane_batch_bytes_max: small } = LIMITS;

  it('are not bounded further where no organization sends little, or none sends at all', () => {
    expect(lanes.batchBytesMax(0)).toBe(whole);
    batch(['noisy', 2 * BULK_COST]);
    batch(['noisy', 2 * BULK_COST]);
    expect(lanes.batchBytesMax(0)).toBe(whole);
  });

  it('grow by a factor of two at most while organizations send little', () => {
    batch(['a', 1000], ['b', 1000]);
    expect([0, small, small + 1, whole].map((last) => lanes.batchBytesMax(last))).toEqual([
      small,
      2 * small,
      2 * small + 2,
      whole,
    ]);
  });

  it('are few beside an organization that has sent much, and while its rows wait', () => {
    batch(['quiet', 1000]);
    batch(['noisy', 2 * BULK_COST]);
    const waiting = lanes.takeBulk();
    expect(lanes.batchBytesMax(whole)).toBe(small);
    now += ACTIVE_MS;
    lanes.begin();
    expect(lanes.batchBytesMax(whole)).toBe(small);
    lanes.landed(waiting);
    expect(lanes.batchBytesMax(whole)).toBe(whole);
    batch(['quiet', 1000], ['noisy', 2 * BULK_COST]);
    lanes.landed(lanes.takeBulk());
    batch(['quiet', 1000]);
    expect(lanes.batchBytesMax(whole)).toBe(small);
  });
});

/** A step of a worker: messages that arrive and are taken, or a landing of the bulk lane. */
type Step =
  | { kind: 'batch'; isQuiet: boolean; noisy: { org: number; trace: number }[]; take: number; cut: Cut | null }
  | { kind: 'bulk'; cut: Cut | null }
  | { kind: 'checkpoint' }
  | { kind: 'kill' };

const cut: fc.Arbitrary<Cut | null> = fc.oneof(
  { weight: 9, arbitrary: fc.constant(null) },
  {
    weight: 1,
    arbitrary: fc.record({
      spans: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
      texts: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
      traces: fc.boolean(),
      usage: fc.boolean(),
    }),
  },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('batch' as const),
      // Whether the quiet organization 0 sends an event, and the events of two noisy ones.
      isQuiet: fc.boolean(),
      noisy: fc.array(fc.record({ org: fc.integer({ min: 1, max: 2 }), trace: fc.nat(4) }), { maxLength: 6 }),
      take: fc.oneof({ weight: 4, arbitrary: fc.constant(20) }, { weight: 1, arbitrary: fc.nat(3) }),
      cut,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('bulk' as const), cut }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('checkpoint' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const) }) },
);

describe('landing in two lanes', () => {
  let serial = 0;
  const eventOf = ({ org, trace }: { org: number; trace: number }): ModelEvent => {
    serial += 1;
    return {
      n: serial,
      org_id: `org_${org}`,
      trace_id: `trace-${org}-${trace}`,
      partition: (org + trace) % MODEL_PARTITIONS,
      span: { prompt: `text ${serial}` },
    };
  };
  const count = <T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
    return counts;
  };

  it('stores spans, texts, use and traces exactly once, wherever workers are killed', async () => {
    let splits = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
        // Three events of an organization in a batch are too many for the express lane.
        const model = new TailModel({}, false, 1500);
        const sent: ModelEvent[] = [];
        for (const one of steps) {
          model.now += 60;
          if (one.kind === 'batch') {
            const quiet = one.isQuiet ? [{ org: 0, trace: serial % 7 }] : [];
            const events = [...quiet, ...one.noisy].map(eventOf);
            sent.push(...events);
            model.publish(events);
            await model.step(one.take, one.cut);
          } else if (one.kind === 'bulk') model.landBulk(one.cut);
          else if (one.kind === 'checkpoint') model.writeCheckpoints();
          else model.kill();
          splits += model.bulkBatches;
        }
        await model.finish();
        const once = new Map(sent.map(({ n }) => [(n + 1).toString(16).padStart(16, '0'), 1]));
        expect(count(model.spans, ({ hex }) => hex)).toEqual(once);
        expect(model.usage.reduce((sum, { events }) => sum + events, 0)).toBe(sent.length);
        const stored = model.spans.filter(({ sampled }) => sampled);
        expect(count(model.texts, ({ hex }) => hex)).toEqual(count(stored, ({ hex }) => hex));
        // The rows of a trace cancel each other but for the one that counts all of its spans.
        const signs = new Map<string, number>();
        for (const { trace, sign } of model.traces) {
          const row = `${trace.state.trace_id} ${trace.state.spans}`;
          signs.set(row, (signs.get(row) ?? 0) + sign);
        }
        const left = [...signs].filter(([, sum]) => sum !== 0);
        const ofTrace = [...count(sent, ({ trace_id }) => trace_id)];
        expect(new Map(left)).toEqual(new Map(ofTrace.map(([trace_id, spans]) => [`${trace_id} ${spans}`, 1])));
      }),
      { numRuns: 300 },
    );
    expect(splits).toBeGreaterThan(100);
  });
});
