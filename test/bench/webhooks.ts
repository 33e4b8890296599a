// Webhooks: 1,000 endpoints of one organization of which 100 never answer. Measures how long
// healthy ones wait from an event to its delivery at a steady rate, and the maximum deliveries a
// second. Events are published straight to their stream.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { headers } from '@nats-io/transport-node';
import { jetstream } from '@nats-io/jetstream';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { localNatsUrl } from '../../ops/launch/secrets.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';
import { EVENT_CATALOG, type EventName } from '../../schemas/events/catalog.ts';
import { cpuBetween, describeCpu, processTree } from './processes.ts';
import { percentile, quantiles, thousands, type Section, single, atLeast, p50p99 } from './report.ts';
import type { Target } from './target.ts';

const ENDPOINTS = 1000;
const HANGING = 100;
/** Endpoints that are created at a time. */
const MAKING = 16;
const EVENTS_PER_SECOND = 10;
/** Events of the burst: each goes to about 55 endpoints. */
const BURST_EVENTS = 400;
const GIVE_UP_MS = 60_000;
const KINDS = Object.keys(EVENT_CATALOG) as EventName[];

export interface WebhooksBenchOptions {
  target: Target;
  seconds: number;
  progress: (line: string) => void;
}

/**
 * Answers every path but /hang/…, which stays unanswered; reports when each event reached each
 * healthy endpoint.
 */
async function startReceiver(onDelivery: (event_id: string, at: number) => void) {
  let hanging = 0;
  const server = createServer((req, res) => {
    if (req.url?.startsWith('/hang') === true) {
      hanging += 1;
      req.resume();
      return;
    }
    onDelivery(String(req.headers['x-service-event-id']), performance.now());
    req.resume();
    req.once('end', () => res.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4096, resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hanging: () => hanging,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Creates the endpoints, each subscribed to one kind of event; every tenth hangs. Returns how many
 * healthy ones each kind has.
 */
async function makeEndpoints({ url, org, key }: Target, receiver: string): Promise<Map<EventName, number>> {
  const healthy = new Map<EventName, number>();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < ENDPOINTS) {
      const at = next++;
      const kind = KINDS[Math.floor(at / 10) % KINDS.length] ?? 'trace.completed';
      const hangs = at % (ENDPOINTS / HANGING) === 0;
      if (!hangs) healthy.set(kind, (healthy.get(kind) ?? 0) + 1);
      const response = await fetch(`${url}/orgs/${org}/webhooks`, {
        method: 'POST',
        headers: { 'X-Org-Api-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ url: `${receiver}/${hangs ? 'hang' : 'ok'}/${at}`, events: [kind] }),
      });
      if (response.status !== 201)
        throw new Error(`an endpoint could not be made: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: MAKING }, lane));
  return healthy;
}

export async function benchWebhooks({ target, seconds, progress }: WebhooksBenchOptions): Promise<Section> {
  if (target.dataDir === null)
    throw new Error('webhooks publishes events of its own: it takes a service that it has started itself');
  const published = new Map<string, number>();
  let waits: number[] = [];
  const receiver = await startReceiver((event_id, at) => {
    waits.push(at - (published.get(event_id) ?? NaN));
  });
  progress(`webhooks: making ${thousands(ENDPOINTS)} endpoints, ${HANGING} of them hang`);
  const healthy = await makeEndpoints(target, receiver.url);
  const nc = await connectNats({ url: localNatsUrl(target.dataDir), name: 'bench', waitMs: 3000 });
  const js = jetstream(nc);
  let serial = 0;
  /**
   * Publishes events of the next kinds in one batch and returns how many healthy endpoints get one.
   */
  const publish = async (count: number): Promise<number> => {
    const events = Array.from({ length: count }, (): ServiceEvent => {
      const event = KINDS[serial++ % KINDS.length] ?? 'trace.completed';
      const event_id = `evt_${randomBytes(8).toString('hex')}`;
      const payload = JSON.stringify({
        event,
        trace_id: `trc_${event_id.slice(4)}`,
        outcome: 'success',
        duration_ms: 1200,
        cost_usd: 0.01,
        judge_scores: {},
      });
      return { event_id, event, org_id: target.org, created_at: Date.now(), payload };
    });
    const head = headers();
    head.set(FINGERPRINT_HEADER, serviceEventsCodec.fingerprint);
    const at = performance.now();
    for (const { event_id } of events) published.set(event_id, at);
    await js.publish(EVENTS_SUBJECT, serviceEventsCodec.encode({ events }), {
      headers: head,
      msgID: randomBytes(8).toString('hex'),
    });
    return events.reduce((sum, { event }) => sum + (healthy.get(event as EventName) ?? 0), 0);
  };
  const arrived = async (count: number): Promise<number> => {
    const deadline = performance.now() + GIVE_UP_MS;
    while (waits.length < count && performance.now() < deadline) await pause(5);
    return count - waits.length;
  };

  // Every endpoint is known, and the hanging ones hang, before anything is measured.
  await arrived(await publish(KINDS.length * 3));
  await pause(11_000);
  waits = [];
  progress(`webhooks: ${EVENTS_PER_SECOND} events/s, ${seconds} s`);
  const [before, began] = [processTree(target.pid ?? 0), performance.now()];
  let expected = 0;
  for (let at = 0; at < seconds * EVENTS_PER_SECOND; at += 1) {
    const ahead = began + (at * 1000) / EVENTS_PER_SECOND - performance.now();
    if (ahead > 0) await pause(ahead);
    expected += await publish(1);
  }
  const missing = await arrived(expected);
  const elapsed = (performance.now() - began) / 1000;
  const cpu = describeCpu(cpuBetween(before, processTree(target.pid ?? 0)));
  const steady = waits;
  await pause(2000);

  waits = [];
  progress(`webhooks: a burst of ${BURST_EVENTS} events`);
  const [burstBefore, burstBegan] = [processTree(target.pid ?? 0), performance.now()];
  const burst = await publish(BURST_EVENTS);
  const burstMissing = await arrived(burst);
  const burstSeconds = (performance.now() - burstBegan) / 1000;
  const burstCpu = describeCpu(cpuBetween(burstBefore, processTree(target.pid ?? 0)));
  await nc.close();
  receiver.close();
  const perSecond = (burst - burstMissing) / burstSeconds;
  return {
    title: `Webhooks: ${thousands(ENDPOINTS)} endpoints of one org, ${HANGING} of them never answer`,
    rows: [
      {
        what: `event to delivery at healthy endpoints, ${thousands(steady.length / elapsed)} deliveries/s`,
        value: quantiles(steady),
        bar: 'p99 ≤ 1 s',
        note: `most ${thousands(Math.max(...steady))} ms; ${missing} not delivered within 60 s; CPU seconds of ${elapsed.toFixed(0)}: ${cpu}`,
        measures: p50p99(steady, { p99: 1000 }),
      },
      {
        what: `deliveries a second, a burst of ${thousands(burst)}`,
        value: `${thousands(perSecond)}/s`,
        bar: '≥ 1,000/s',
        note: `${burstMissing} not delivered within 60 s; tries at hanging endpoints: ${thousands(receiver.hanging())}; CPU seconds of ${burstSeconds.toFixed(0)}: ${burstCpu}`,
        measures: single(perSecond, 'per_s', atLeast(1000)),
      },
    ],
    data: {
      steady_rate: steady.length / elapsed,
      steady_p50_ms: percentile(steady, 0.5),
      steady_p99_ms: percentile(steady, 0.99),
      missing,
      burst,
      burst_per_second: perSecond,
      burst_missing: burstMissing,
    },
  };
}
