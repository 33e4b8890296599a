// Lookups in the store for events that the in-memory window of ids cannot decide.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventIdentity } from '../../../pipeline/domain/traces/event_identity.ts';
import { KnownRows } from '../../../pipeline/worker/known_rows.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const DAY_MS = 86_400_000;
const hexOf = (n: number): string => n.toString(16).padStart(16, '0');

let store: TestStore;
let client: ClickHouse;
let first: number;

const SPANS = [
  { org_id: 'org_a', trace_id: 'today', event_hex: hexOf(1), started_at: NOW },
  { org_id: 'org_a', trace_id: 'long', event_hex: hexOf(2), started_at: NOW - 40 * DAY_MS },
  { org_id: 'org_a', trace_id: 'long', event_hex: hexOf(3), started_at: NOW - 1 },
  { org_id: 'org_b', trace_id: 'today', event_hex: hexOf(1), started_at: NOW - 3 * DAY_MS },
];

beforeAll(async () => {
  store = await openTestStore();
  client = createClickHouse({ url: store.database.url });
  first = await store.landSpans(
    SPANS.map((span) => aSpan({ ...span, ended_at: span.started_at + 1, received_at: NOW })),
  );
});
afterAll(async () => {
  await client.close();
  await store.close();
});

const asked = (org_id: string, trace_id: string, n: number, log_seq = 1_000_000) => ({
  org_id,
  trace_id,
  event_hex: hexOf(n),
  partition: 0,
  log_seq,
  log_index: 0,
});
const found = async (...events: ReturnType<typeof asked>[]): Promise<string[]> =>
  [...(await new KnownRows(client).findLanded(events))].sort();
const identities = (...events: { org_id: string; event_hex: string }[]): string[] =>
  events.map((event) => eventIdentity(event)).sort();

it('finds an event that has landed, however old its trace is, for each organization its own', async () => {
  const all = [
    asked('org_a', 'today', 1),
    asked('org_a', 'long', 2),
    asked('org_a', 'long', 3),
    asked('org_b', 'today', 1),
  ];
  expect(await found(...all)).toEqual(identities(...all));
  for (const one of all) expect(await found(one)).toEqual(identities(one));
});

it('finds nothing for an event that has not landed, for an unknown trace, or for the same row read again', async () => {
  expect(await found(asked('org_a', 'today', 9))).toEqual([]);
  expect(await found(asked('org_a', 'nowhere', 1))).toEqual([]);
  expect(await found(asked('org_c', 'today', 1))).toEqual([]);
  expect(await found(asked('org_a', 'today', 1, first))).toEqual([]);
});
