// Which receivers may be sent to: a slow, dead or hostile receiver takes little from the others.
import { expect, test } from 'vitest';
import { GATE } from '../../../pipeline/delivery/webhook_bounds.ts';
import { Gate, type TryEnd } from '../../../pipeline/delivery/webhook_gate.ts';
import { seeded } from '../../support/store.ts';

const OK: TryEnd = { ok: true, duration_ms: 20, pause_ms: 0 };
const HANG: TryEnd = { ok: false, duration_ms: 10_000, pause_ms: 0 };
const FAIL: TryEnd = { ok: false, duration_ms: 20, pause_ms: 0 };

const offerMany = (gate: Gate<number>, key: string, org: string, count: number, now: number) => {
  const kinds = { go: 0, wait: 0, later: 0 };
  for (let at = 0; at < count; at += 1) kinds[gate.offer(key, org, at, 100, now).kind] += 1;
  return kinds;
};

test('an unknown receiver gets a small window and a bounded queue; further deliveries come again later', () => {
  const gate = new Gate<number>();
  const waiting = (GATE.waiting_lane_ms_max / GATE.guess_ms) * GATE.window_first;
  expect(waiting).toBeLessThan(GATE.waiting_lane_max);
  expect(offerMany(gate, 'a', 'org', 500, 0)).toEqual({
    go: GATE.window_first,
    wait: waiting,
    later: 500 - GATE.window_first - waiting,
  });
  expect(gate.inFlight).toBe(GATE.window_first);
  expect(gate.waiting).toBe(waiting);
  // A receiver known to be quick may have more deliveries waiting, up to a bound.
  for (let tries = 0; tries < 100; tries += 1) gate.end('a', OK, tries);
  expect(offerMany(gate, 'a', 'org', 500, 100).wait + gate.inFlight).toBeLessThanOrEqual(
    GATE.waiting_lane_max + GATE.window_max,
  );
});

test('a receiver that answers gets a wider window, and waiting deliveries go in order', () => {
  const gate = new Gate<number>();
  offerMany(gate, 'a', 'org', 34, 0);
  const gone: number[] = [];
  let inFlight: number = GATE.window_first;
  for (let tries = 0; tries < 34; tries += 1) {
    const { go, later } = gate.end('a', OK, tries);
    gone.push(...go);
    inFlight += go.length - 1;
    expect(later).toEqual([]);
    expect(inFlight).toBeLessThanOrEqual(GATE.window_max);
  }
  expect(gone).toEqual(Array.from({ length: 32 }, (_, at) => at + 2));
  expect(gate.inFlight).toBe(0);
});

test('a timeout returns all waiting deliveries and leaves one attempt at a time', () => {
  const gate = new Gate<number>();
  offerMany(gate, 'a', 'org', 10, 0);
  expect(gate.end('a', HANG, 10_000).later).toHaveLength(8);
  expect(gate.end('a', HANG, 10_000).go).toEqual([]);
  expect(offerMany(gate, 'a', 'org', 3, 10_001)).toEqual({ go: 1, wait: 0, later: 2 });
  expect(gate.isFailing('a')).toBe(true);
  gate.end('a', OK, 10_050);
  expect(gate.isFailing('a')).toBe(false);
});

test('a quick failure halves the window and delays no other receiver', () => {
  const gate = new Gate<number>();
  offerMany(gate, 'a', 'org', 2, 0);
  for (let at = 0; at < 6; at += 1) {
    gate.end('a', OK, at);
    gate.offer('a', 'org', at, 100, at);
  }
  expect(offerMany(gate, 'a', 'org', 20, 10)).toEqual({ go: 6, wait: 14, later: 0 });
  const freed = gate.end('a', FAIL, 20);
  expect(freed).toEqual({ go: [], later: [] });
  expect(gate.inFlight).toBe(7);
  for (let at = 0; at < 4; at += 1) expect(gate.end('a', FAIL, 21).later).toEqual([]);
  // The window is down to one at a time, which continues.
  expect(gate.end('a', FAIL, 22).go).toHaveLength(0);
  expect(gate.end('a', FAIL, 23).go).toHaveLength(0);
  expect(gate.end('a', FAIL, 24).go).toHaveLength(1);
});

test('hanging receivers leave places for the others, however many they are', () => {
  const gate = new Gate<number>();
  for (let org = 0; org < 10; org += 1) {
    for (let at = 0; at < 400; at += 1) {
      const key = `${org}:${at}`;
      if (gate.offer(key, `org${org}`, at, 100, 0).kind === 'go') gate.end(key, HANG, 0);
    }
  }
  let hanging = 0;
  for (let org = 0; org < 10; org += 1)
    for (let at = 0; at < 400; at += 1) {
      const begun = gate.inFlight;
      gate.offer(`${org}:${at}`, `org${org}`, at, 100, 1);
      hanging += gate.inFlight - begun;
    }
  expect(hanging).toBe(GATE.suspect_in_flight_max);
  expect(offerMany(gate, 'healthy', 'another', 1, 2)).toEqual({ go: 1, wait: 0, later: 0 });
  // The same holds within an organization that has its maximum.
  expect(offerMany(gate, 'healthy too', 'org0', 1, 2)).toEqual({ go: 1, wait: 0, later: 0 });
});

test('one organization cannot take all places, and its waiting deliveries go as its own end', () => {
  const gate = new Gate<number>();
  let go = 0;
  for (let at = 0; at < 1000; at += 1) if (gate.offer(`k${at}`, 'greedy', at, 100, 0).kind === 'go') go += 1;
  expect(go).toBe(GATE.org_in_flight_max);
  expect(gate.offer('other', 'modest', 1, 100, 0).kind).toBe('go');
  expect(gate.end('k0', OK, 20).go).toEqual([GATE.org_in_flight_max]);
});

test('deliveries without a place come again one after the other, and within a bound', () => {
  const gate = new Gate<number>();
  const waits: number[] = [];
  gate.offer('a', 'org', 0, 100, 0);
  gate.end('a', HANG, 0);
  gate.offer('a', 'org', 0, 100, 0);
  for (let at = 0; at < 30_000; at += 1) {
    const offer = gate.offer('a', 'org', at, 100, 0);
    if (offer.kind === 'later') waits.push(offer.ms);
  }
  expect(waits).toHaveLength(30_000);
  expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  expect(Math.max(...waits)).toBeLessThanOrEqual(GATE.put_off_failing_ms_max + GATE.failing_step_ms_max);
});

test('receivers that fail repeatedly are tried at a pace that they share', () => {
  const gate = new Gate<number>();
  const fail = (key: string, times: number, now: number) => {
    for (let at = 0; at < times; at += 1) {
      expect(gate.offer(key, 'org', at, 100, now + at * GATE.pace_ms_max).kind).toBe('go');
      gate.end(key, FAIL, now + at * GATE.pace_ms_max);
    }
    return now + (times - 1) * GATE.pace_ms_max;
  };
  const last = fail('k0', GATE.paced_failures, 0);
  // The delivery waits here for its turn, and gets it when the pause is over.
  expect(gate.offer('k0', 'org', 7, 100, last + 1).kind).toBe('wait');
  expect(gate.pausing).toBe(true);
  expect(gate.resume(last + GATE.pace_ms_min - 1).go).toEqual([]);
  expect(gate.resume(last + GATE.pace_ms_min).go).toEqual([7]);
  expect(gate.pausing).toBe(false);
  for (let at = 1; at < 60; at += 1) fail(`k${at}`, GATE.paced_failures, 0);
  gate.end('k0', FAIL, last);
  gate.offer('k0', 'org', 8, 100, last + 1);
  expect(gate.resume(last + 60 / (GATE.paced_tries_per_second / 1000) - 1).go).not.toContain(8);
  expect(gate.resume(last + 60 / (GATE.paced_tries_per_second / 1000)).go).toContain(8);
});

test('a receiver that asks for a pause gets it', () => {
  const gate = new Gate<number>();
  gate.offer('a', 'org', 0, 100, 0);
  gate.end('a', { ok: false, duration_ms: 5, pause_ms: 5000 }, 100);
  const offer = gate.offer('a', 'org', 1, 100, 200);
  expect(offer.kind).toBe('later');
  expect(offer.kind === 'later' && offer.ms).toBeGreaterThanOrEqual(4900);
  expect(gate.offer('a', 'org', 1, 100, 5100).kind).toBe('go');
});

test('a delivery that waits too long is returned, and idle receivers are forgotten', () => {
  const gate = new Gate<number>();
  offerMany(gate, 'a', 'org', 5, 0);
  expect(gate.sweep(GATE.waiting_ms_max).later).toEqual([]);
  expect(gate.sweep(GATE.waiting_ms_max + 1).later.map(({ item }) => item)).toEqual([2, 3, 4]);
  expect(gate.waiting).toBe(0);
  gate.end('a', FAIL, GATE.waiting_ms_max + 1);
  gate.end('a', FAIL, GATE.waiting_ms_max + 1);
  gate.sweep(GATE.waiting_ms_max + 2 + GATE.idle_ms_max);
  expect(gate.isFailing('a')).toBe(false);
});

test('every place that was taken is released, whatever happens in between', () => {
  const gate = new Gate<string>();
  const random = seeded(7);
  const under: string[] = [];
  const ends = [OK, OK, FAIL, HANG, { ...OK, duration_ms: 5000 }, { ...FAIL, pause_ms: 500 }];
  let [offered, done, later, now] = [0, 0, 0, 0];
  const follow = (freed: { go: string[]; later: { item: string }[] }) => {
    under.push(...freed.go);
    later += freed.later.length;
  };
  for (let step = 0; step < 20_000; step += 1) {
    now += 10;
    if (random() < 0.6) {
      const key = `k${Math.floor(random() * 40)}`;
      const offer = gate.offer(key, `o${key.slice(-1)}`, key, 100, now);
      offered += 1;
      if (offer.kind === 'go') under.push(key);
      if (offer.kind === 'later') later += 1;
    } else if (under.length > 0) {
      const [key = ''] = under.splice(Math.floor(random() * under.length), 1);
      done += 1;
      follow(gate.end(key, ends[Math.floor(random() * ends.length)] ?? OK, now));
    }
    if (step % 100 === 0) follow(gate.sweep(now));
    expect(gate.inFlight).toBe(under.length);
  }
  expect(offered).toBe(under.length + done + later + gate.waiting);
  for (const key of under.splice(0)) {
    done += 1;
    follow(gate.end(key, FAIL, now));
  }
  expect(gate.drain()).toEqual([]);
  expect([gate.inFlight, gate.waiting, offered]).toEqual([0, 0, done + later]);
});
