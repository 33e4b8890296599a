// The cost of admission with many organizations, keys and agents: memory and time to load them, the
// time of authentication and rate limit, and the latency that a client sees over HTTP.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { localNatsUrl } from '../../ops/launch/secrets.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import type { AdmissionNumbers } from './admission_child.ts';
import { AGENTS, AGENTS_OF_FIRST, fillControl, ORGS, orgIdOf, rawKeyOf } from './fill_control.ts';
import { Lane, requestHead } from './lane.ts';
import { mebibytes, ms, percentile, quantiles, thousands, type Section, single, atMost, p50p99 } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const WARM_REQUESTS = 1000;
const REQUESTS = 6000;
const LIST_REQUESTS = 500;
const SEEN_MS_MAX = 60_000;
const ADDRESSES_MS_MAX = 30_000;
const EMPTY = Buffer.alloc(0);

/** Formats microseconds. */
const us = (value: number): string => `${value < 100 ? value.toFixed(1) : String(Math.round(value))} µs`;
const inUs = (values: readonly number[]): number[] => values.map((value) => value * 1000);
const usQuantiles = (values: readonly number[]): string =>
  `p50 ${us(percentile(values, 0.5))}, p99 ${us(percentile(values, 0.99))} (n=${values.length})`;

/** Loads and admits in a process of its own, so that its memory is measured alone. */
async function inProcess(natsUrl: string): Promise<AdmissionNumbers> {
  const child = fork(new URL('./admission_child.ts', import.meta.url), [natsUrl], { execArgv: ['--expose-gc'] });
  const ended = once(child, 'exit').then(() => null);
  const said = await Promise.race([once(child, 'message').then(([numbers]) => numbers as AdmissionNumbers), ended]);
  if (said === null) throw new Error('the loading process ended without its numbers');
  await ended;
  return said;
}

const getHead = (target: Target, index: number, path: string): Buffer =>
  requestHead(laneTarget({ ...target, org: orgIdOf(index), key: rawKeyOf(index) }), 'GET', path, 0);

/**
 * Returns the milliseconds of each request, sent one after another on one connection. @throws Error
 * on an answer other than 200
 */
async function latencies(lane: Lane, count: number, headOf: (index: number) => Buffer): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const head = headOf(index);
    const began = performance.now();
    const status = await lane.send(head, EMPTY);
    times.push(performance.now() - began);
    if (status !== 200) throw new Error(`an answer of ${status}`);
  }
  return times;
}

/** The service answers a moment before it records the addresses of its parts. */
export async function natsUrlOf(dataDir: string): Promise<string> {
  for (const deadline = performance.now() + ADDRESSES_MS_MAX; ;) {
    try {
      return localNatsUrl(dataDir);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Waits until the service has seen the last record written. */
async function untilSeen(target: Target): Promise<void> {
  const last = ORGS - 1;
  const headers = {
    'X-Org-Api-Key': rawKeyOf(last),
    'X-Org-Id': orgIdOf(last),
  };
  for (const deadline = performance.now() + SEEN_MS_MAX; ;) {
    const answer = await fetch(`${target.url}/orgs/${orgIdOf(last)}`, {
      headers,
    });
    await answer.arrayBuffer();
    if (answer.status === 200) return;
    if (performance.now() > deadline) throw new Error('the service does not see the keys that were written');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Milliseconds of requests over HTTP. */
interface HttpTimes {
  health: number[];
  org: number[];
  lists: { first: number[]; deep: number[]; named: number[] };
}

/** Measures requests over HTTP, one at a time. */
async function overHttp(target: Target): Promise<HttpTimes> {
  const lane = new Lane(laneTarget(target));
  const orgHeads = Array.from({ length: ORGS }, (_, index) => getHead(target, index, `/orgs/${orgIdOf(index)}`));
  const healthHead = getHead(target, 0, '/healthz');
  const health = () => healthHead;
  const org = (index: number) => orgHeads[(index * 7) % ORGS] ?? EMPTY;
  for (const head of [health, org]) await latencies(lane, WARM_REQUESTS, head);
  const times = { health: [] as number[], org: [] as number[] };
  // Alternates, so that both see the same machine.
  for (let done = 0; done < REQUESTS; done += WARM_REQUESTS) {
    times.health.push(...(await latencies(lane, WARM_REQUESTS, health)));
    times.org.push(...(await latencies(lane, WARM_REQUESTS, (index) => org(done + index))));
  }
  const listOf = (query: string) => {
    const head = getHead(target, 0, `/orgs/${orgIdOf(0)}/agents?${query}`);
    return latencies(lane, LIST_REQUESTS, () => head);
  };
  const lists = {
    first: await listOf('limit=50'),
    deep: await listOf('limit=200&offset=19000'),
    named: await listOf('name=AGENT%2019&limit=50'),
  };
  lane.close();
  return { ...times, lists };
}

/** Milliseconds that the credential, the rate limit and the record of an organization add to a request. */
const admissionMs = ({ org, health }: HttpTimes): number => percentile(org, 0.5) - percentile(health, 0.5);

/** The rows of what was measured within a process. */
function rowsInProcess(numbers: Awaited<ReturnType<typeof inProcess>>): Section['rows'] {
  const note = `${thousands(numbers.loaded.orgs)} orgs, ${thousands(ORGS)} keys, ${thousands(AGENTS)} agents`;
  return [
    {
      what: 'loading orgs, keys and agents',
      value: `${(numbers.load_ms / 1000).toFixed(2)} s`,
      bar: '≤ 3 s',
      note,
      measures: single(numbers.load_ms / 1000, 's', atMost(3)),
    },
    {
      what: 'memory of them (RSS)',
      value: mebibytes(numbers.rss_delta_bytes),
      bar: '≤ 500 MB',
      note: `heap after collection ${mebibytes(numbers.heap_delta_bytes)}`,
      measures: single(numbers.rss_delta_bytes, 'bytes', atMost(500e6)),
    },
    { what: 'API key', value: usQuantiles(numbers.key), measures: p50p99(numbers.key, {}, 'us') },
    {
      what: 'rate limit',
      value: usQuantiles(numbers.limit),
      bar: '< 5 µs',
      note: 'headers and telling the other processes included',
      measures: p50p99(numbers.limit, { p50: 5 }, 'us'),
    },
    {
      what: 'API key and rate limit',
      value: usQuantiles(numbers.key_limit),
      measures: p50p99(numbers.key_limit, {}, 'us'),
    },
    {
      what: 'token, first time',
      value: usQuantiles(numbers.token_first),
      note: 'HS256',
      measures: p50p99(numbers.token_first, {}, 'us'),
    },
    {
      what: 'token, again',
      value: usQuantiles(numbers.token_again),
      measures: p50p99(numbers.token_again, {}, 'us'),
    },
  ];
}

/** The rows of what was measured over HTTP. */
function rowsOverHttp(times: HttpTimes): Section['rows'] {
  const cost = admissionMs(times);
  const { lists } = times;
  return [
    { what: 'GET /healthz', value: usQuantiles(inUs(times.health)), measures: p50p99(times.health) },
    {
      what: 'GET /orgs/{org_id}',
      value: usQuantiles(inUs(times.org)),
      note: `another of ${thousands(ORGS)} keys each time`,
      measures: p50p99(times.org),
    },
    {
      what: 'credential, rate limit and record',
      value: `${cost.toFixed(3)} ms p50`,
      bar: '≤ 0.2 ms',
      note: 'the difference of the two',
      measures: [{ name: 'p50', value: cost, unit: 'ms', bar: atMost(0.2) }],
    },
    {
      what: 'agents, first 50',
      value: quantiles(lists.first),
      bar: '≤ 20 ms p50',
      note: `of ${thousands(AGENTS_OF_FIRST)} in the org`,
      measures: p50p99(lists.first, { p50: 20 }),
    },
    { what: 'agents, 200 at offset 19,000', value: quantiles(lists.deep), measures: p50p99(lists.deep) },
    {
      what: 'agents by name',
      value: quantiles(lists.named),
      note: `${ms(percentile(lists.named, 1))} ms at most`,
      measures: p50p99(lists.named),
    },
  ];
}

/** Fills the KV of a service that this process started and measures. */
export async function benchAdmission(target: Target, progress: (line: string) => void): Promise<Section> {
  if (target.dataDir === null) throw new Error('control takes a service of its own: leave --url out');
  const natsUrl = await natsUrlOf(target.dataDir);
  progress(`control: filling ${thousands(ORGS)} orgs, ${thousands(ORGS)} keys, ${thousands(AGENTS)} agents`);
  const nc = await connectNats({
    url: natsUrl,
    name: 'bench-fill',
    waitMs: 5000,
  });
  await fillControl(await openLog(nc, { replicas: 1, logBytesMax: 16 * 1024 ** 3 }), progress);
  await nc.close();
  await untilSeen(target);
  progress('  loading them in a process of its own');
  const numbers = await inProcess(natsUrl);

  progress('  over HTTP');
  const times = await overHttp(target);
  return {
    title: 'Letting requests in',
    rows: [...rowsInProcess(numbers), ...rowsOverHttp(times)],
    data: {
      load_ms: numbers.load_ms,
      rss_delta_bytes: numbers.rss_delta_bytes,
      heap_delta_bytes: numbers.heap_delta_bytes,
      health_p50_ms: percentile(times.health, 0.5),
      org_p50_ms: percentile(times.org, 0.5),
      cost_p50_ms: admissionMs(times),
    },
  };
}
