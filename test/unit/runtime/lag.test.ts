import { beforeEach, expect, it } from 'vitest';
import { Lag, StreamLags } from '../../../pipeline/worker/lag.ts';

const HOUR_MS = 3_600_000;
let lag = new Lag();

beforeEach(() => {
  lag = new Lag();
});

it('lag is zero when everything has landed', () => {
  expect(lag.seconds({ now: HOUR_MS, behind: false, landed_at: 1000 })).toBe(0);
});

it('lag is the age of the newest landed event while events arrive continuously', () => {
  expect(lag.seconds({ now: 10_000, behind: true, landed_at: 7000 })).toBe(3);
  expect(lag.seconds({ now: 11_000, behind: true, landed_at: 7500 })).toBe(3.5);
});

it('lag starts anew after a pause: the next event has not waited since the last one', () => {
  lag.seconds({ now: HOUR_MS, behind: false, landed_at: 1000 });
  expect(lag.seconds({ now: HOUR_MS + 2000, behind: true, landed_at: 1000 })).toBe(2);
});

it('lag is that of the backlog after a start, though for a moment nothing is known of it', () => {
  lag.seconds({ now: HOUR_MS, behind: false, landed_at: 0 });
  expect(lag.seconds({ now: HOUR_MS + 1000, behind: true, landed_at: 0 })).toBe(0);
  expect(lag.seconds({ now: HOUR_MS + 2000, behind: true, landed_at: 2000 })).toBe(3600);
});

it('the lag of several streams is that of the one that is furthest behind, and a stream that lands hides no other', () => {
  const lags = new StreamLags();
  const state = (landed_at: number) => ({ prepared_through: 1, landed_through: 1, landed_at });
  const owned = new Map([
    [0, state(1000)],
    [1, state(9000)],
  ]);
  const streams = (isBehind: boolean) => [
    { name: 'INGEST', partitions: [0], isBehind },
    { name: 'INGEST_1', partitions: [1], isBehind: true },
  ];
  expect(lags.seconds(streams(true), owned, 10_000)).toBe(9);
  expect(lags.seconds(streams(false), owned, 10_000)).toBe(1);
  // The first stream has caught up once, so what waits in it now is younger than that.
  expect(lags.seconds(streams(true), owned, 12_000)).toBe(3);
});

it('a stream is behind while what was prepared of it has not landed', () => {
  const owned = new Map([[0, { prepared_through: 2, landed_through: 1, landed_at: 1000 }]]);
  const streams = [{ name: 'INGEST', partitions: [0], isBehind: false }];
  expect(new StreamLags().seconds(streams, owned, 5000)).toBe(4);
});
