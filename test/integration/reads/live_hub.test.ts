// The hub of live streams over real connections and the real engine: what it leaves out, whom it
// cuts off, and that nothing is left of streams that ended.
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { READ_MAX, TRACES_MAX } from '../../../api/telemetry/live/channel.ts';
import { FILTERS_ORG_MAX, LISTENERS_ORG_MAX, LiveHub, type LiveSignal } from '../../../api/telemetry/live/hub.ts';
import type { Topic } from '../../../api/telemetry/live/schema.ts';
import { readChangedTraces } from '../../../api/telemetry/traces/changed.ts';
import { filtersOf, type ListFilters } from '../../../api/telemetry/traces/filters.ts';
import { liveStreams } from '../../../ops/platform/metrics.ts';
import { EventStream } from '../../support/event_stream.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';

const T = Date.parse('2026-03-01T00:00:00Z');
const TRACES = READ_MAX + 100;

let store: TestStore;
let server: Server;
let url: string;
let hub: LiveHub<ListFilters>;
/** Sources that are followed now, each with the function that takes its signals. */
const takers = new Set<(signal: LiveSignal) => void>();
let slow = 0;
let reads = 0;

const source = (take: (signal: LiveSignal) => void) => {
  takers.add(take);
  return () => void takers.delete(take);
};
const tell = (signal: LiveSignal): void => {
  for (const take of takers) take(signal);
};

beforeAll(async () => {
  store = await openTestStore();
  const spans = Array.from({ length: TRACES }, (_, n) =>
    aSpan({ org_id: 'org_a', trace_id: `t-${n}`, agent_id: n % 2 === 0 ? 'even' : 'odd', started_at: T + n }),
  );
  spans.push(aSpan({ org_id: 'org_b', trace_id: 't-1', started_at: T }));
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
  server = createServer((req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://x');
    const org_id = searchParams.get('org') ?? 'org_a';
    const agent = searchParams.get('agent');
    const filter = agent === null ? null : filtersOf(org_id, { agent_id: [agent] });
    const topics = new Set((searchParams.get('topics') ?? 'traces').split(',') as Topic[]);
    hub.listen(res, { org_id, topics, trace_ids: new Set(), filter, isAllowed: () => true }).catch((error: unknown) => {
      res.writeHead(429).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await store.close();
});

beforeEach(() => {
  slow = 0;
  reads = 0;
  hub = new LiveHub<ListFilters>({
    sources: {
      events: source,
      landings: () => () => undefined,
      reconnects: () => () => undefined,
      incidents: source,
      evals: () => () => undefined,
      jobs: () => () => undefined,
    },
    readTraces: (org_id, trace_ids, filters, signal) => {
      reads += 1;
      return readChangedTraces(store.client, org_id, trace_ids, filters, signal);
    },
    settled: () => Promise.resolve(),
    onSlow: () => {
      slow += 1;
    },
    onProblem: () => undefined,
  });
});

/** Returns the number of streams that the metric shows. */
const openStreams = async (): Promise<number | undefined> => (await liveStreams.get()).values[0]?.value;

async function listen(query = ''): Promise<EventStream> {
  const stream = await EventStream.open(`${url}/?${query}`);
  if (stream.status === 200) await stream.next('ready');
  return stream;
}
const ids = (data: Record<string, unknown>): unknown[] =>
  (data['traces'] as Record<string, unknown>[]).map(({ trace_id }) => trace_id);
const changeAll = (org_id = 'org_a'): void => {
  for (let n = 0; n < TRACES; n += 1) tell({ kind: 'trace', org_id, trace_id: `t-${n}`, complete: true });
};

describe('a batch of more traces than a message takes', () => {
  it('has the newest traces, and says how many it leaves out, for each filter from one read', async () => {
    const [all, odd, foreign] = await Promise.all([listen(), listen('agent=odd'), listen('org=org_b')]);
    changeAll();
    const newest = (step: number) => Array.from({ length: TRACES_MAX }, (_, n) => `t-${TRACES - 1 - n * step}`);
    const [first, ofOdd] = await Promise.all([all.next('traces'), odd.next('traces')]);
    expect([ids(first), first['dropped']]).toEqual([newest(1), TRACES - TRACES_MAX]);
    expect([ids(ofOdd), ofOdd['dropped']]).toEqual([newest(2), READ_MAX / 2 - TRACES_MAX + TRACES - READ_MAX]);
    expect(reads).toBe(1);
    tell({ kind: 'trace', org_id: 'org_b', trace_id: 't-1', complete: false });
    expect(ids(await foreign.next('traces'))).toEqual(['t-1']);
    expect(foreign.of('traces')).toHaveLength(1);
    for (const stream of [all, odd, foreign]) stream.close();
    await eventually(() => hub.size.listeners === 0);
  });
});

describe('bounds of an organization', () => {
  it('reject one more listener, and one more filter, than it can have', async () => {
    const streams = await Promise.all(
      Array.from({ length: LISTENERS_ORG_MAX }, (_, n) => listen(`agent=a${n % FILTERS_ORG_MAX}`)),
    );
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    expect((await listen()).status).toBe(429);
    expect((await listen('org=org_b')).status).toBe(200);
    streams.pop()?.close();
    await eventually(() => hub.size.listeners === LISTENERS_ORG_MAX);
    expect((await listen('agent=another')).status).toBe(429);
    const again = await listen('agent=a0');
    expect(again.status).toBe(200);
    hub.drain();
    await eventually(() => hub.size.listeners === 0);
  });
});

it('nothing is followed and nothing is kept after 1,000 listeners have come and gone', async () => {
  for (let round = 0; round < 25; round += 1) {
    const streams = await Promise.all(
      Array.from({ length: 40 }, (_, n) => listen(`org=org_${n % 7}&topics=traces,incidents&agent=a${n % 3}`)),
    );
    expect(hub.size).toEqual({ listeners: 40, sources: 3 });
    expect(await openStreams()).toBe(40);
    for (const stream of streams) stream.close();
    await eventually(() => hub.size.listeners === 0);
  }
  expect(hub.size).toEqual({ listeners: 0, sources: 0 });
  expect(await openStreams()).toBe(0);
  expect(takers.size).toBe(0);
  changeAll();
  expect(reads).toBe(0);
});

it('changes beyond a megabyte between two batches become a resync', async () => {
  const stream = await listen('topics=incidents');
  for (let n = 0; n < 60; n += 1) tellIncident(`inc_${n}`);
  expect(await stream.next('resync')).toEqual({ reason: 'overflow' });
  await eventually(() => stream.of('incident').length > 50);
  expect(stream.of('incident').length).toBeLessThan(60);
  stream.close();
  await eventually(() => hub.size.listeners === 0);
});

it('a client that does not read is cut off, and the others get everything', async () => {
  const reading = await listen('topics=incidents');
  const socket = await silentClient();
  await eventually(() => hub.size.listeners === 2);
  // Each batch comes after the reading client has the one before, until the kernel takes no more for
  // the other client and the process would have to keep it.
  let told = 0;
  while (slow === 0) {
    for (let n = 0; n < 45; n += 1) tellIncident(`inc_${told++}`);
    await eventually(() => reading.of('incident').length === told, { what: 'every message at the reading client' });
  }
  await eventually(() => hub.size.listeners === 1, { what: 'the end of the slow client' });
  expect(reading.of('resync')).toEqual([]);
  reading.close();
  socket.destroy();
  await eventually(() => hub.size.listeners === 0);
});

/** Connects, asks for the stream, and never reads. */
function silentClient(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
      socket.pause();
      socket.write('GET /?topics=incidents HTTP/1.1\r\nHost: x\r\n\r\n');
      resolve(socket);
    });
    socket.on('error', () => undefined);
  });
}

/** Reports an incident of about 20 kB. */
function tellIncident(incident_id: string): void {
  tell({
    kind: 'message',
    org_id: 'org_a',
    topic: 'incidents',
    event: 'incident',
    id: incident_id,
    data: {
      incident_id,
      cluster_id: 'c',
      status: 'open',
      severity: 'warning',
      agent_id: null,
      root_span_name: null,
      error: 'x'.repeat(20_000),
      trace_count: 5,
      opened_at: new Date(T).toISOString(),
      resolved_at: null,
    },
  });
}
