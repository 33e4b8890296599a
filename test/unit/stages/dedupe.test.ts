// Which events are repeats: the same text is one event within an organization, and two events in
// two organizations.
import { describe, expect, it } from 'vitest';
import { eventIdentity } from '../../../pipeline/domain/traces/event_identity.ts';
import { createDedupeStage } from '../../../pipeline/stages/dedupe.ts';
import { Forgotten } from '../../../pipeline/stages/forgotten.ts';
import { IdWindow } from '../../../pipeline/stages/id_window.ts';
import type { DecodedEvent } from '../../../pipeline/stage.ts';

const HOUR_MS = 3_600_000;
const event = (org_id: string, event_hex: string, log_seq: number): DecodedEvent => ({
  partition: 0,
  log_seq,
  log_index: 0,
  org_id,
  trace_id: 'trace',
  event_hex,
  received_at: 1000,
  spans: [],
});

function stage(window: IdWindow, landed: ReadonlySet<string> = new Set()) {
  return createDedupeStage({
    windowOf: () => window,
    forgottenOf: () => null,
    findLanded: () => Promise.resolve(landed),
    now: () => 2000,
  });
}
const kinds = (outcomes: readonly { kind: string }[]): string[] => outcomes.map(({ kind }) => kind);

describe('dedupe', () => {
  it('dedupe drops what an organization repeats, and nothing identical of another organization', () => {
    const dedupe = stage(new IdWindow(HOUR_MS, 1000));
    const hex = '00112233445566ff';
    expect(
      kinds(
        dedupe.run([event('org_a', hex, 1), event('org_b', hex, 2), event('org_a', hex, 3), event('org_b', hex, 4)]),
      ),
    ).toEqual(['emit', 'emit', 'drop', 'drop']);
  });

  it("dedupe uses the store's answer by organization too, where the window is unsure", async () => {
    const window = new IdWindow(HOUR_MS, 0);
    const hex = 'ffffffffffffffff';
    for (const org_id of ['org_a', 'org_b']) window.add(eventIdentity({ org_id, event_hex: hex }), 1000);
    window.trim();
    window.add('0123456789abcdef', 1000);
    window.trim();
    const dedupe = stage(window, new Set([eventIdentity({ org_id: 'org_a', event_hex: hex })]));
    const batch = [event('org_a', hex, 1), event('org_b', hex, 2)];
    await dedupe.prefetch?.(batch);
    expect(kinds(dedupe.run(batch))).toEqual(['drop', 'emit']);
  });

  it('dedupe knows what arrived within the window before an event, however long ago that was', () => {
    const window = new IdWindow(HOUR_MS, 1000);
    const dedupe = createDedupeStage({
      windowOf: () => window,
      forgottenOf: () => null,
      findLanded: () => Promise.resolve(new Set()),
      now: () => 100 * HOUR_MS,
    });
    const hex = '00112233445566ff';
    const at = (received_at: number, log_seq: number): DecodedEvent => ({
      ...event('org_a', hex, log_seq),
      received_at,
    });
    const other = (received_at: number, log_seq: number): DecodedEvent => ({
      ...event('org_b', hex, log_seq),
      received_at,
    });
    // A log of three days ago that is read only now.
    expect(kinds(dedupe.run([at(10 * HOUR_MS, 1)]))).toEqual(['emit']);
    expect(kinds(dedupe.run([other(10.4 * HOUR_MS, 2)]))).toEqual(['emit']);
    expect(kinds(dedupe.run([at(10.5 * HOUR_MS, 3)]))).toEqual(['drop']);
    expect(kinds(dedupe.run([at(13 * HOUR_MS, 4)]))).toEqual(['emit']);
  });
});

describe('the identity of an event', () => {
  it('the identity of an event is 16 hex characters, different for every organization, and the same for the same', () => {
    const ids = Array.from({ length: 1000 }, (_, n) =>
      eventIdentity({ org_id: `org_${n}`, event_hex: '0000000000000000' }),
    );
    expect(new Set(ids).size).toBe(1000);
    expect(ids.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
    expect(eventIdentity({ org_id: 'org_7', event_hex: '0000000000000000' })).toBe(ids[7]);
  });
});

describe('dedupe after an erasure', () => {
  const hex = '00112233445566ff';
  /** Returns a stage that has seen one event of org_a, with the store's current rows. */
  function erased(forget: (forgotten: Forgotten) => void) {
    const window = new IdWindow(HOUR_MS, 1000);
    const forgotten = new Forgotten(HOUR_MS, 1000);
    const stored = new Set<string>();
    const asked: string[] = [];
    const dedupe = createDedupeStage({
      windowOf: () => window,
      forgottenOf: () => forgotten,
      findLanded: (events) => {
        asked.push(...events.map(eventIdentity));
        return Promise.resolve(stored);
      },
      now: () => 2000,
    });
    const run = async (...batch: DecodedEvent[]): Promise<string[]> => {
      await dedupe.prefetch?.(batch);
      return kinds(dedupe.run(batch));
    };
    return {
      run,
      stored,
      asked,
      forgotten,
      forget: () => {
        forget(forgotten);
      },
    };
  }
  const scopes: [string, (forgotten: Forgotten) => void][] = [
    [
      'its trace',
      (forgotten) => {
        forgotten.addTraces('org_a', ['trace'], 2000);
      },
    ],
    [
      'its organization',
      (forgotten) => {
        forgotten.addOrg('org_a', 2000);
      },
    ],
  ];

  it.each(scopes)(
    'dedupe admits the first identical event after the erasure of %s, and drops its repeats',
    async (_, forget) => {
      const stage = erased(forget);
      expect(await stage.run(event('org_a', hex, 1), event('org_a', hex, 2))).toEqual(['emit', 'drop']);
      stage.forget();
      expect(await stage.run(event('org_a', hex, 3), event('org_a', hex, 4))).toEqual(['emit', 'drop']);
      // Its row need not be in the store yet.
      expect(await stage.run(event('org_a', hex, 5))).toEqual(['drop']);
      // A second erasure makes it new once more.
      stage.forget();
      expect(await stage.run(event('org_a', hex, 6), event('org_a', hex, 7))).toEqual(['emit', 'drop']);
    },
  );

  it.each(scopes)(
    'dedupe asks the store about an event that arrived before the end of the erasure of %s',
    async (_, forget) => {
      const stage = erased(forget);
      await stage.run(event('org_a', hex, 1));
      stage.forget();
      stage.stored.add(eventIdentity({ org_id: 'org_a', event_hex: hex }));
      expect(await stage.run(event('org_a', hex, 2))).toEqual(['drop']);
      expect(stage.asked).toEqual([eventIdentity({ org_id: 'org_a', event_hex: hex })]);
    },
  );

  it.each(scopes)(
    'dedupe asks nothing about events of others after the erasure of %s, and drops their repeats',
    async (_, forget) => {
      const stage = erased(forget);
      const other = { ...event('org_b', hex, 1), trace_id: 'other' };
      await stage.run(other);
      stage.forget();
      expect(await stage.run({ ...other, log_seq: 2 })).toEqual(['drop']);
      expect(stage.asked).toEqual([]);
    },
  );

  it('dedupe forgets an erasure when no earlier id can be in the window any more', () => {
    const stage = erased((forgotten) => {
      forgotten.addTraces('org_a', ['trace'], 2000);
      forgotten.addOrg('org_b', 2000);
    });
    stage.forget();
    expect(stage.forgotten.isEmpty).toBe(false);
    stage.forgotten.forget(2000 + HOUR_MS);
    expect(stage.forgotten.concerns({ org_id: 'org_a', trace_id: 'trace' })).toBe(true);
    stage.forgotten.forget(2000 + 3 * HOUR_MS);
    expect(stage.forgotten.isEmpty).toBe(true);
  });
});
