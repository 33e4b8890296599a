// The faults, each as its effect on a running stack: strike, hold, heal. A fault reports when it
// has struck, and resolves when it is healed.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { SHARDS_KEY } from '../../ops/platform/nats/shard_map.ts';
import { shardsRecord } from '../../schemas/shards.ts';
import { INGEST_STREAM } from '../../schemas/streams.ts';
import type { Random } from '../bench/vocabulary.ts';
import { pause } from './client.ts';
import type { SmallDisk } from './disk.ts';
import type { Link } from './network.ts';
import type { ProxyMode } from './proxy.ts';
import type { Kind, ProcessName, Stack } from './stack.ts';
import { TAKEOVER_MS_MAX } from './takeover.ts';
import type { Traffic } from './traffic.ts';
import { rollingUpgrade } from './upgrade.ts';
import type { Version } from './versions.ts';

/** The context of a fault. */
export interface Ground {
  stack: Stack;
  log: Log;
  random: Random;
  /** The disk of the whole stack; null for the machine's own. */
  disk: SmallDisk | null;
  /** The load balancer of the callers. */
  traffic: Traffic;
  /** The versions of a rolling upgrade; null without one. */
  versions: { older: Version; newer: Version } | null;
  /** Notes what happens, for the evidence of a breach. */
  note: (what: string) => void;
  /** Reports that the fault is active from now on. */
  struck: (what: string) => void;
  /**
   * Reports that these processes have just been killed: what API processes had answered and not
   * recorded may be gone.
   */
  killed: (processes: readonly ProcessName[]) => void;
}

export interface Fault {
  name: string;
  what: string;
  /** What a stack must have. */
  needs?: { cluster?: true; proxied?: true; disk?: true; shards?: true; apis?: number; olderVersion?: true };
  /** Default duration, milliseconds. */
  holdMs: number;
  /** Milliseconds within which the partitions of the silent worker must land rows again; absent without a bound. */
  takeoverMsMax?: number;
  /** True if the worker that it strikes drains before it falls silent. */
  drains?: true;
  /** True if no request of a caller may fail, behind a load balancer that checks the health of API processes. */
  noFailures?: true;
  run: (ground: Ground, holdMs: number) => Promise<void>;
}

/** Returns the current leader of a stream of the log. */
async function leader({ log, stack, random }: Ground): Promise<ProcessName> {
  const { open } = log.streams.layout;
  const { cluster } = await log.jsm.streams.info(open[random() % open.length]?.name ?? INGEST_STREAM);
  return stack.named('nats').find((name) => name === cluster?.leader) ?? 'nats-1';
}

const any = ({ stack, random }: Ground, kind: Kind): ProcessName => {
  const names = stack.named(kind);
  return names[random() % names.length] ?? `${kind}-1`;
};

/** Kills all at once with kill -9; after a while all are started again. */
async function killed(ground: Ground, names: readonly ProcessName[], holdMs: number): Promise<void> {
  await Promise.all(names.map((name) => ground.stack.kill(name)));
  ground.killed(names);
  ground.struck(`kill -9 ${names.join(', ')}`);
  await pause(holdMs);
  await ground.stack.bootAll();
}

/** Starts each worker again with another division of the partitions; kills the last one as soon as the first has it. */
async function movedPartitions(ground: Ground, holdMs: number): Promise<void> {
  const { stack } = ground;
  const [first = 'worker-1', ...others] = stack.named('worker');
  const last = others.at(-1) ?? first;
  stack.divide();
  await stack.end(first);
  ground.struck(`${first} ends and starts with other ranges, then kill -9 ${last}`);
  await stack.boot(first);
  await stack.kill(last);
  ground.killed([last]);
  await pause(holdMs);
  for (const name of others) {
    await stack.end(name);
    await stack.boot(name);
  }
  const record = await (await ground.log.bucket('service')).get(SHARDS_KEY);
  if (record === null || shardsRecord.parse(record.json()).places.every(({ before }) => before.length === 0))
    throw new Error('no partition has moved');
}

/** Stops a process in order with SIGTERM; after a while it is started again. */
async function ended(ground: Ground, name: ProcessName, holdMs: number): Promise<void> {
  ground.struck(`SIGTERM ${name}`);
  await ground.stack.end(name);
  await pause(holdMs);
  await ground.stack.bootAll();
}

async function paused(ground: Ground, names: readonly ProcessName[], holdMs: number): Promise<void> {
  for (const name of names) ground.stack.pause(name);
  ground.struck(`SIGSTOP ${names.join(', ')}`);
  await pause(holdMs);
  for (const name of names) ground.stack.resume(name);
}

async function network(ground: Ground, links: readonly Link[], mode: ProxyMode, holdMs: number): Promise<void> {
  ground.stack.network.set(links, mode);
  ground.struck(`${links.join(', ')}: ${mode}`);
  await pause(holdMs);
  ground.stack.network.set(links, 'pass');
}

/** The connections of these kinds of process to one shard of ClickHouse. */
function shardLinks({ stack, random }: Ground, clients: readonly ('api' | 'worker')[]): Link[] {
  const shard = random() % stack.named('clickhouse').length;
  return clients.map((client) => `${client} clickhouse ${shard}` as const);
}

function diskOf({ disk }: Ground): SmallDisk {
  if (disk === null) throw new Error('this fault needs a stack on a disk of its own');
  return disk;
}

const SHORT_MS = 1000;
const LONG_MS = 10_000;

const kill = (kind: Kind): Fault => ({
  name: `kill-${kind}`,
  what: `kill -9 of one ${kind}, started again after a second`,
  holdMs: SHORT_MS,
  run: (ground, holdMs) => killed(ground, [any(ground, kind)], holdMs),
});

const stop = (kind: Kind): Fault => ({
  name: `stop-${kind}`,
  what: `SIGSTOP of one ${kind} for 10 s`,
  holdMs: LONG_MS,
  run: (ground, holdMs) => paused(ground, [any(ground, kind)], holdMs),
});

const net = (
  name: string,
  what: string,
  links: readonly Link[] | ((ground: Ground) => Link[]),
  mode: ProxyMode,
): Fault => ({
  name,
  what,
  needs: { proxied: true },
  holdMs: LONG_MS,
  run: (ground, holdMs) => network(ground, typeof links === 'function' ? links(ground) : links, mode, holdMs),
});

const everybody = (ground: Ground): Link[] => shardLinks(ground, ['api', 'worker']);

/** By name; the most informative first. */
export const FAULTS: readonly Fault[] = [
  {
    name: 'nats-leader',
    what: 'kill -9 of the nats-server that leads the log, started again after 10 s',
    needs: { cluster: true },
    holdMs: LONG_MS,
    run: async (ground, holdMs) => killed(ground, [await leader(ground)], holdMs),
  },
  kill('api'),
  { ...kill('worker'), takeoverMsMax: TAKEOVER_MS_MAX },
  {
    name: 'end-worker',
    what: 'SIGTERM of one worker, started again a second after it has drained',
    holdMs: SHORT_MS,
    takeoverMsMax: TAKEOVER_MS_MAX,
    drains: true,
    run: (ground, holdMs) => ended(ground, any(ground, 'worker'), holdMs),
  },
  rollingUpgrade,
  kill('nats'),
  kill('clickhouse'),
  {
    name: 'clickhouse-away',
    what: 'ClickHouse, or a shard of it, away for 2 minutes',
    holdMs: 120_000,
    run: (ground, holdMs) => killed(ground, [any(ground, 'clickhouse')], holdMs),
  },
  net('cut-api-nats', 'the APIs cut off from NATS for 10 s', ['api nats'], 'cut'),
  net('cut-worker-nats', 'the workers cut off from NATS for 10 s', ['worker nats'], 'cut'),
  net('cut-clickhouse', 'everybody cut off from ClickHouse, or a shard of it, for 10 s', everybody, 'cut'),
  {
    name: 'cut-routes',
    what: 'the leader of the log cut off from the other nats-servers for 10 s, while clients reach all of them',
    needs: { proxied: true, cluster: true },
    holdMs: LONG_MS,
    run: async (ground, holdMs) => {
      const node = ground.stack.named('nats').indexOf(await leader(ground));
      await network(ground, [`routes ${node}`], 'cut', holdMs);
    },
  },
  net('stall-api-nats', 'no byte passes between APIs and NATS for 10 s', ['api nats'], 'stalled'),
  net('stall-worker-nats', 'no byte passes between workers and NATS for 10 s', ['worker nats'], 'stalled'),
  net('stall-clickhouse', 'no byte passes to ClickHouse, or a shard of it, for 10 s', everybody, 'stalled'),
  net(
    'half-open-nats',
    'NATS hears nothing of APIs and workers for 10 s, and they hear it',
    ['api nats', 'worker nats'],
    'half-open',
  ),
  net(
    'half-open-clickhouse',
    'ClickHouse, or a shard of it, hears nothing of anybody for 10 s',
    everybody,
    'half-open',
  ),
  stop('api'),
  { ...stop('worker'), takeoverMsMax: TAKEOVER_MS_MAX },
  {
    name: 'stop-nats',
    what: 'SIGSTOP of the nats-server that leads the log for 10 s',
    holdMs: LONG_MS,
    run: async (ground, holdMs) => paused(ground, [await leader(ground)], holdMs),
  },
  stop('clickhouse'),
  {
    name: 'move-partitions',
    what: 'partitions move to another shard: workers start one after the other with other ranges, and one is killed -9 meanwhile',
    needs: { shards: true },
    holdMs: SHORT_MS,
    run: movedPartitions,
  },
  {
    name: 'nats-quorum',
    what: 'kill -9 of all nats-servers but one, started again after 10 s',
    needs: { cluster: true },
    holdMs: LONG_MS,
    run: (ground, holdMs) => killed(ground, ground.stack.named('nats').slice(1), holdMs),
  },
  {
    name: 'disk-full',
    what: 'no byte free on the disk of everything for 10 s; then there is room, and nats-servers are started again as a supervisor does',
    needs: { disk: true },
    holdMs: LONG_MS,
    run: async (ground, holdMs) => {
      const disk = diskOf(ground);
      disk.fillUp(0);
      ground.struck('disk full');
      await pause(holdMs);
      disk.freeAll();
      // A stream that met a full disk accepts nothing more until its server restarts: ops/adr/0029.
      for (const name of ground.stack.named('nats')) {
        await ground.stack.end(name);
        await ground.stack.boot(name);
      }
      await ground.stack.bootAll();
    },
  },
  {
    name: 'power-loss',
    what: 'power of the machine lost: what was not synced is gone; then fsck, and everything is started again',
    needs: { disk: true },
    holdMs: SHORT_MS,
    run: async (ground, holdMs) => {
      const disk = diskOf(ground);
      disk.cut();
      ground.struck('power lost');
      await Promise.all(ground.stack.processes.map((name) => ground.stack.kill(name)));
      ground.killed(ground.stack.processes);
      await pause(holdMs);
      disk.recover();
      await ground.stack.bootAll();
    },
  },
  {
    name: 'restart-all',
    what: 'kill -9 of every process at once, all started again after a second',
    holdMs: SHORT_MS,
    run: (ground, holdMs) => killed(ground, ground.stack.processes, holdMs),
  },
];
