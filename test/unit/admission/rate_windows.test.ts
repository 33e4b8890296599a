// The rates of API keys: use counts for a minute from its slot of 100 ms on, whether this process
// admitted it or heard of it late.
import { describe, expect, test } from 'vitest';
import { RateWindows, WINDOW_MS } from '../../../api/admission/budget/rate_windows.ts';

const ACCOUNT = 'tokens\norg\nkey';
const START = 1_700_000_000_000;

/** Returns windows whose clock the test sets. */
function windowsAt(start = START) {
  const clock = { now: start };
  const windows = new RateWindows(() => clock.now);
  return { clock, windows, used: () => windows.used(ACCOUNT).tokens };
}

describe('use of the last minute', () => {
  test('counts for a minute from its slot on, and leaves slot by slot', () => {
    const { clock, windows, used } = windowsAt();
    windows.reserve(ACCOUNT, [windows.useNow(5)]);
    clock.now = START + 250;
    windows.reserve(ACCOUNT, [windows.useNow(7)]);
    clock.now = START + WINDOW_MS + 99;
    expect(used()).toBe(12);
    clock.now = START + WINDOW_MS + 100;
    expect(used()).toBe(7);
    clock.now = START + WINDOW_MS + 299;
    expect(used()).toBe(7);
    clock.now = START + WINDOW_MS + 300;
    expect(used()).toBe(0);
  });

  test('that another process announces late leaves with its own slot, before use announced earlier', () => {
    const { clock, windows, used } = windowsAt();
    const early = windows.useNow(5);
    clock.now = START + 10_000;
    windows.reserve(ACCOUNT, [windows.useNow(7)]);
    windows.reserve(ACCOUNT, [early]);
    expect(used()).toBe(12);
    clock.now = START + WINDOW_MS + 100;
    expect(used()).toBe(7);
  });

  test('that is announced after its minute counts nothing, and its cancellation takes nothing away', () => {
    const { clock, windows, used } = windowsAt();
    const early = windows.useNow(5);
    clock.now = START + WINDOW_MS + 100;
    windows.reserve(ACCOUNT, [windows.useNow(7)]);
    windows.reserve(ACCOUNT, [early]).cancel();
    expect(used()).toBe(7);
  });

  test('is taken away when it is cancelled, and stays when it is confirmed', () => {
    const { windows, used } = windowsAt();
    const [kept, cancelled] = [1, 2].map((tokens) => windows.reserve(ACCOUNT, [windows.useNow(tokens)]));
    kept?.confirm(new Map([[0, 1]]));
    cancelled?.cancel();
    expect(used()).toBe(1);
  });
});

test('the account is free again when enough of the oldest slots have left', () => {
  const { clock, windows } = windowsAt();
  windows.reserve(ACCOUNT, [windows.useNow(5)]);
  clock.now = START + 1000;
  windows.reserve(ACCOUNT, [windows.useNow(7)]);
  expect(windows.freeIn(ACCOUNT, 13)).toBe(1);
  expect(windows.freeIn(ACCOUNT, 12)).toBe(WINDOW_MS + 100 - 1000);
  expect(windows.freeIn(ACCOUNT, 7)).toBe(WINDOW_MS + 100);
  expect(windows.freeIn('tokens\norg\nother', 5)).toBe(1);
});

test('accounts that used nothing within a minute are dropped, others kept', () => {
  const { clock, windows, used } = windowsAt();
  windows.reserve('tokens\norg\nidle', [windows.useNow(5)]);
  clock.now = START + WINDOW_MS;
  windows.reserve(ACCOUNT, [windows.useNow(7)]);
  clock.now = START + WINDOW_MS + 100;
  windows.sweep();
  expect(used()).toBe(7);
  expect(windows.used('tokens\norg\nidle').tokens).toBe(0);
});
