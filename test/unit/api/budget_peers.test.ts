// Tracks which processes are alive and how complete this process's knowledge is, by received
// messages rather than by the clock.
import { expect, test } from 'vitest';
import { Echo } from '../../../api/admission/budget/echo.ts';
import { type Begun, Held, RETELL_MS, RETOLD_MAX } from '../../../api/admission/budget/reservations.ts';
import { GONE_MS, Peers } from '../../../api/admission/budget/peers.ts';

test('knowledge reaches up to the sending of the newest message that returned; lost earlier ones are not waited for', () => {
  const echo = new Echo();
  expect(echo.surely).toBe(-Infinity);
  echo.sent(1, 10);
  echo.sent(2, 20);
  echo.sent(3, 30);
  echo.heard(2);
  expect(echo.surely).toBe(20);
  // A late message and one that was never sent change nothing.
  echo.heard(1);
  expect(echo.surely).toBe(20);
  echo.heard(99);
  expect(echo.surely).toBe(30);
});

test('a silent process is forgotten once it would have been heard, however much time has passed', () => {
  const peers = new Peers('me');
  peers.heard('a', true, 0);
  peers.heard('b', true, 900);
  peers.forget(GONE_MS);
  expect(peers.others).toBe(2);
  peers.forget(GONE_MS + 1);
  expect(peers.others).toBe(1);
  expect(peers.homesOf('org', true)).not.toContain('a');
});

test('a process that did not answer is not asked until it is heard from again, and counts as alive meanwhile', () => {
  const peers = new Peers('me');
  peers.heard('a', true, 0);
  peers.silent('a');
  expect([peers.homesOf('org', true), peers.others]).toEqual([['me'], 1]);
  peers.heard('a', true, 1);
  expect([...peers.homesOf('org', true)].sort()).toEqual(['a', 'me']);
  peers.gone('a');
  expect([peers.homesOf('org', true), peers.others]).toEqual([['me'], 0]);
});

test('processes that have just started are asked last', () => {
  const peers = new Peers('me');
  peers.heard('ready', true, 0);
  peers.heard('new', false, 0);
  for (let org = 0; org < 20; org++) {
    const homes = peers.homesOf(`org_${String(org)}`, false);
    expect(homes[0]).toBe('ready');
    expect([...homes].sort()).toEqual(['me', 'new', 'ready']);
  }
});

test('long reservations are reported again in turn, the least recently reported first, in bounded numbers', () => {
  const held = new Held();
  const row = ['', 0, 5, 9, 0, 0, '0'] as Begun[2][number];
  for (let id = 0; id < RETOLD_MAX + 2; id++) held.begin([id, 'org', [row]], id < 2 ? 0 : 1);
  const idsAt = (now: number) => held.due(now).map(([id]) => id);
  expect(idsAt(RETELL_MS - 1)).toEqual([]);
  expect(idsAt(RETELL_MS)).toEqual([0, 1]);
  held.end(5);
  const all = idsAt(RETELL_MS + 1);
  expect([all.length, all[0], all.includes(5)]).toEqual([RETOLD_MAX - 1, 2, false]);
  expect(idsAt(2 * RETELL_MS)).toEqual([0, 1]);
  // A reservation above the bound by itself does not block the others.
  held.begin([9000, 'org', Array.from({ length: RETOLD_MAX + 1 }, () => row)], 0);
  for (const now of [2 * RETELL_MS + 1, 3 * RETELL_MS]) held.due(now);
  expect(idsAt(4 * RETELL_MS)).toContain(9000);
});
