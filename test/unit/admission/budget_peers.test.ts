// Tracks which processes are alive and how complete this process's knowledge is, by received
// messages rather than by the clock.
import { expect, test } from 'vitest';
import { Echo } from '../../../api/admission/budget/echo.ts';
import {
  type Announcement,
  OpenReservations,
  REANNOUNCE_MS,
  REANNOUNCED_MAX,
} from '../../../api/admission/budget/reservations.ts';
import { PEER_EXPIRY_MS, Peers } from '../../../api/admission/budget/peers.ts';

test('knowledge reaches up to the sending of the newest message that returned; lost earlier ones are not waited for', () => {
  const echo = new Echo();
  expect(echo.heardUntil).toBe(-Infinity);
  echo.sent(1, 10);
  echo.sent(2, 20);
  echo.sent(3, 30);
  echo.heard(2);
  expect(echo.heardUntil).toBe(20);
  // One that comes late, and one that was never sent, change nothing.
  echo.heard(1);
  expect(echo.heardUntil).toBe(20);
  echo.heard(99);
  expect(echo.heardUntil).toBe(30);
});

test('a silent process is forgotten once it would have been heard, however much time has passed', () => {
  const peers = new Peers('me');
  peers.heard('a', true, 0);
  peers.heard('b', true, 900);
  peers.forget(PEER_EXPIRY_MS);
  expect(peers.others).toBe(2);
  peers.forget(PEER_EXPIRY_MS + 1);
  expect(peers.others).toBe(1);
  expect(peers.decidersOf('org', true)).not.toContain('a');
});

test('a process that did not answer is not asked until it is heard from again, and counts as alive meanwhile', () => {
  const peers = new Peers('me');
  peers.heard('a', true, 0);
  peers.silent('a');
  expect([peers.decidersOf('org', true), peers.others]).toEqual([['me'], 1]);
  peers.heard('a', true, 1);
  expect([...peers.decidersOf('org', true)].sort()).toEqual(['a', 'me']);
  peers.gone('a');
  expect([peers.decidersOf('org', true), peers.others]).toEqual([['me'], 0]);
});

test('processes that have just started are asked last', () => {
  const peers = new Peers('me');
  peers.heard('ready', true, 0);
  peers.heard('new', false, 0);
  for (let org = 0; org < 20; org++) {
    const deciders = peers.decidersOf(`org_${org}`, false);
    expect(deciders[0]).toBe('ready');
    expect([...deciders].sort()).toEqual(['me', 'new', 'ready']);
  }
});

test('what lasts is told again in turn, the longest untold first, and no more of it at a time than is good', () => {
  const open = new OpenReservations();
  const row = ['', 0, 5, 9, 0, 0, '0'] as Announcement[2][number];
  const begun = Array.from({ length: REANNOUNCED_MAX + 2 }, (_, id) => open.begin([id, 'org', [row]], id < 2 ? 0 : 1));
  const idsAt = (now: number) => open.due(now).map(([id]) => id);
  expect(idsAt(REANNOUNCE_MS - 1)).toEqual([]);
  expect(idsAt(REANNOUNCE_MS)).toEqual([0, 1]);
  const [, , , , , fifth] = begun;
  if (fifth !== undefined) open.end(fifth);
  const all = idsAt(REANNOUNCE_MS + 1);
  expect([all.length, all[0], all.includes(5)]).toEqual([REANNOUNCED_MAX - 1, 2, false]);
  expect(idsAt(2 * REANNOUNCE_MS)).toEqual([0, 1]);
  // One that is more than that by itself does not stand in the way of all.
  open.begin([9000, 'org', Array.from({ length: REANNOUNCED_MAX + 1 }, () => row)], 0);
  for (const now of [2 * REANNOUNCE_MS + 1, 3 * REANNOUNCE_MS]) open.due(now);
  expect(idsAt(4 * REANNOUNCE_MS)).toContain(9000);
});

test('of thousands of reservations, those that last are announced again in their order', () => {
  const open = new OpenReservations();
  const row = ['', 0, 5, 9, 0, 0, '0'] as Announcement[2][number];
  for (let id = 0; id < 5000; id++) {
    const one = open.begin([id, 'org', [row]], 0);
    if (id % 1000 !== 0) open.end(one);
  }
  const idsAt = (now: number) => open.due(now).map(([id]) => id);
  expect(idsAt(REANNOUNCE_MS)).toEqual([0, 1000, 2000, 3000, 4000]);
  expect(idsAt(REANNOUNCE_MS)).toEqual([]);
  for (let id = 5000; id < 5010; id++) open.end(open.begin([id, 'org', [row]], REANNOUNCE_MS));
  open.begin([5010, 'org', [row]], REANNOUNCE_MS);
  expect(idsAt(2 * REANNOUNCE_MS)).toEqual([0, 1000, 2000, 3000, 4000, 5010]);
});
