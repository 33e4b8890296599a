import { beforeEach, expect, it } from 'vitest';
import { Lag } from '../../../pipeline/worker/lag.ts';

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
