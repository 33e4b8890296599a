// Reads of incidents after the live stream reported changes: how often, and until when.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { IncidentRereads } from '../../../api/portal/web/screens/incidents/incident_rereads.ts';
import type { Changed } from '../../../api/portal/web/screens/incidents/open_incidents.ts';

const MINUTE_MS = 60_000;
const OPENED = '2026-02-03T04:05:06Z';
const opened = (incident_id: string): Changed => ({ incident_id, status: 'open', opened_at: OPENED });
const resolved = (incident_id: string): Changed => ({ incident_id, status: 'resolved', opened_at: OPENED });

/** A list that shows what the test puts in it, with the number of its reads. */
function aList() {
  const list = { reads: 0, shown: [] as Changed[] | null };
  const rereads = new IncidentRereads({
    readAll() {
      list.reads += 1;
      return Promise.resolve();
    },
    open: () => (list.shown === null ? undefined : { data: list.shown, meta: { total: list.shown.length } }),
  });
  return { list, rereads };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('reads until the list shows the change, then once more', async () => {
  const { list, rereads } = aList();
  const followed = rereads.follow(opened('a'));
  await vi.advanceTimersByTimeAsync(1000);
  expect(list.reads).toBe(3);
  list.shown = [opened('a')];
  await vi.advanceTimersByTimeAsync(1000);
  await followed;
  expect(list.reads).toBe(5);
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  expect(list.reads).toBe(5);
});

it('ends the loop of an earlier state of an incident when a newer state comes', async () => {
  const { list, rereads } = aList();
  const followed = [rereads.follow(opened('a'))];
  await vi.advanceTimersByTimeAsync(500);
  // The list never shows the incident open: it is resolved before.
  followed.push(rereads.follow(resolved('a')));
  await vi.advanceTimersByTimeAsync(0);
  const { reads } = list;
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  expect(list.reads).toBe(reads);
  await Promise.all(followed);
});

it('follows the changes of several incidents with the reads of one', async () => {
  const { list, rereads } = aList();
  const followed = ['a', 'b', 'c'].map((incident_id) => rereads.follow(opened(incident_id)));
  await vi.advanceTimersByTimeAsync(0);
  expect(list.reads).toBe(3);
  await vi.advanceTimersByTimeAsync(250);
  expect(list.reads).toBe(4);
  list.shown = [opened('b'), opened('c')];
  await vi.advanceTimersByTimeAsync(10_000);
  const { reads } = list;
  await vi.advanceTimersByTimeAsync(8000);
  // The pauses have grown to 4 seconds.
  expect(list.reads).toBe(reads + 2);
  list.shown = [opened('a'), opened('b'), opened('c')];
  await vi.advanceTimersByTimeAsync(4000);
  await Promise.all(followed);
  expect(list.reads).toBe(reads + 4);
});

it('gives up a change that the list never shows after 20 reads, also while other changes come', async () => {
  const { list, rereads } = aList();
  const followed = [rereads.follow(opened('lost'))];
  for (let n = 0; n < 30; n += 1) {
    followed.push(rereads.follow(opened(`later_${n}`)));
    list.shown = [opened(`later_${n}`)];
    await vi.advanceTimersByTimeAsync(0);
  }
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  const { reads } = list;
  await Promise.all(followed);
  expect(reads).toBeLessThan(100);
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  expect(list.reads).toBe(reads);
});

it('reads once when changes may have been missed, and follows no earlier change then', async () => {
  const { list, rereads } = aList();
  const followed = rereads.follow(opened('a'));
  await vi.advanceTimersByTimeAsync(0);
  await rereads.follow(null);
  expect(list.reads).toBe(2);
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  await followed;
  expect(list.reads).toBe(2);
});

it('ends with the page of the organization, and where no list is shown', async () => {
  const { list, rereads } = aList();
  const followed = rereads.follow(opened('a'));
  await vi.advanceTimersByTimeAsync(0);
  rereads.stop();
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  await followed;
  expect(list.reads).toBe(1);
  list.shown = null;
  await rereads.follow(opened('a'));
  expect(list.reads).toBe(2);
});
