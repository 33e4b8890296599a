// The gateway: what it adds to the time of a call, end to end, against a mock upstream that answers at once. Direct calls and calls
// through the gateway take turns, so that both see the same machine; every call through it is recorded by the whole pipeline.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { Lane, type LaneTarget, requestHead } from './lane.ts';
import { ms, percentile, thousands, type Section } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const PORT = 18_431;
/** What the service is started with. */
export const IN_FRONT: Record<string, string> = { SERVICE_LLM_BASE_URL: `http://127.0.0.1:${String(PORT)}/v1` };
/** At how many connections, and what may be added there. */
const RUNS = [
  { connections: 1, p: 0.5, bar: 1 },
  { connections: 10, p: 0.5, bar: 4 },
  { connections: 16, p: 0.99, bar: 8 },
];
const TURNS = 8;
const WARM_REQUESTS = 2000;
const PATH = '/v1/chat/completions';
const BODY = Buffer.from(
  JSON.stringify({
    model: 'gpt-4o-mini',
    temperature: 0.2,
    messages: [
      { role: 'system', content: 'Answer in one sentence, and say what you are not sure of. '.repeat(8) },
      { role: 'user', content: 'What is the capital of France, and since when? '.repeat(8) },
    ],
  }),
);

export interface GatewayBenchOptions {
  target: Target;
  seconds: number;
  progress: (line: string) => void;
}

/** Milliseconds of each call, as many connections as are asked for calling without a pause. @throws Error on an answer other than 200 */
async function run(to: LaneTarget, connections: number, until: { seconds: number } | { requests: number }): Promise<number[]> {
  const head = requestHead(to, 'POST', PATH, BODY.length);
  const times: number[] = [];
  const end = performance.now() + ('seconds' in until ? until.seconds * 1000 : Infinity);
  const most = 'requests' in until ? until.requests : Infinity;
  const call = async () => {
    const lane = new Lane(to);
    while (performance.now() < end && times.length < most) {
      const began = performance.now();
      const status = await lane.send(head, BODY);
      times.push(performance.now() - began);
      if (status !== 200) throw new Error(`an answer of ${String(status)}`);
    }
    lane.close();
  };
  await Promise.all(Array.from({ length: connections }, call));
  return times;
}

export async function benchGateway({ target, seconds, progress }: GatewayBenchOptions): Promise<Section> {
  const upstream = fork(new URL('./gateway_upstream.ts', import.meta.url), [String(PORT)]);
  try {
    await once(upstream, 'message');
    return await measured({ target, seconds, progress });
  } finally {
    upstream.kill('SIGTERM');
  }
}

async function measured({ target, seconds, progress }: GatewayBenchOptions): Promise<Section> {
  const through = laneTarget(target);
  const direct = { host: '127.0.0.1', port: PORT, headers: 'Content-Type: application/json\r\n' };
  const each = Math.max(1, seconds / (RUNS.length * TURNS * 2));
  for (const to of [direct, through]) await run(to, 4, { requests: WARM_REQUESTS });
  const rows = [];
  const data = [];
  for (const { connections, p, bar } of RUNS) {
    const times = { direct: [] as number[], through: [] as number[] };
    for (let turn = 0; turn < TURNS; turn++) {
      for (const time of await run(direct, connections, { seconds: each })) times.direct.push(time);
      for (const time of await run(through, connections, { seconds: each })) times.through.push(time);
    }
    const added = (q: number) => percentile(times.through, q) - percentile(times.direct, q);
    const note = `direct p50 ${percentile(times.direct, 0.5).toFixed(2)} ms, p99 ${ms(percentile(times.direct, 0.99))} ms; through p50 ${percentile(times.through, 0.5).toFixed(2)} ms, p99 ${ms(percentile(times.through, 0.99))} ms; n=${thousands(times.through.length)}`;
    const load = (loadavg()[0] ?? 0).toFixed(1);
    progress(`  ${String(connections)}: added p50 ${added(0.5).toFixed(2)} ms, p99 ${added(0.99).toFixed(2)} ms; ${note}; load ${load}`);
    rows.push({
      what: `added at ${String(connections)} connection${connections === 1 ? '' : 's'}`,
      value: `p50 ${added(0.5).toFixed(2)} ms, p99 ${added(0.99).toFixed(2)} ms`,
      bar: `p${String(p * 100)} < ${String(bar)} ms`,
      note: `${note}; load average ${load}`,
    });
    data.push({ connections, added_p50: added(0.5), added_p99: added(0.99), load: Number(load) });
  }
  return { title: 'The gateway in front of a mock upstream, every call recorded', rows, data };
}
