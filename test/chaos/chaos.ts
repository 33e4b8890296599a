// Kills, pauses and restarts the service's processes one by one under load, then checks that everything acknowledged is
// there exactly once and every sum is right.
// In: how many rounds, which processes. Out: what happened and every check; throws only where the harness itself fails.
import { connectNats } from '../../ops/nats/connect.ts';
import { openLog, type Log } from '../../ops/streams.ts';
import { sqlRunner, type RunSql } from '../bench/store.ts';
import { allCompleted, doubledPositions, lagMessages, runChecks, type Check } from './checks.ts';
import { Sender } from './sender.ts';
import { PROCESSES, Stack, type ProcessName } from './stack.ts';

export interface ChaosOptions {
  rounds: number;
  processes: readonly ('api' | 'worker' | 'nats' | 'clickhouse')[];
  /** Events a second. */
  rate: number;
  /** How long a worker is paused. */
  pauseMs: number;
  progress: (line: string) => void;
  /** Aborted: everything is stopped, and the run rejects. */
  signal?: AbortSignal;
}

export interface Kill {
  process: string;
  /** From the kill to the next event that was acknowledged. */
  acknowledged_after_ms: number;
  /** From the kill to the next row that landed. */
  landed_after_ms: number;
}

export interface ChaosResult {
  kills: Kill[];
  /** From the death, or the pause, of a worker until the other one owned every partition. */
  takeovers: { why: string; owned_ms: number; probes_landed_ms: number }[];
  acknowledged: number;
  retries: number;
  checks: Check[];
  /** When something does not hold: what happened when, which rows are concerned, where the folder was left. */
  evidence: string[];
}

const SETTLE_MS_MAX = 90_000;
const RECOVER_MS_MAX = 60_000;
const TAKEOVER_MS_MAX = 15_000;
/** What the contract allows. */
const TAKEOVER_BAR_MS = 3000;
const LOOK_MS = 20;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
const between = (low: number, high: number): number => low + Math.random() * (high - low);

/** Milliseconds until the condition holds; the bound where it does not. A check that throws counts as not yet. */
async function until(holds: () => Promise<boolean> | boolean, msMax: number): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < msMax) {
    if (
      await Promise.resolve()
        .then(holds)
        .catch(() => false)
    )
      return performance.now() - began;
    await pause(LOOK_MS);
  }
  return msMax;
}

class Chaos {
  readonly #options: ChaosOptions;
  readonly #stack = new Stack();
  readonly #kills: Kill[] = [];
  readonly #takeovers: ChaosResult['takeovers'] = [];
  /** Kills and pauses with their times. */
  readonly #timeline: string[] = [];
  #partitions = 0;

  constructor(options: ChaosOptions) {
    this.#options = options;
  }

  async run(): Promise<ChaosResult> {
    const { rate, rounds, progress } = this.#options;
    let breached = false;
    const { signal } = this.#options;
    signal?.addEventListener('abort', () => void this.#stack.stop());
    try {
      await this.#stack.start();
      const { address } = this.#stack;
      const nc = await connectNats({ url: address.natsUrl, name: 'chaos', waitMs: 10_000 });
      const log = await openLog(nc, { replicas: 1, logBytesMax: 2 * 1024 ** 3 });
      const runSql = sqlRunner(address.clickhouseUrl);
      const sender = new Sender(address, rate);
      this.#partitions = (await this.#owners(log)).size;
      await until(async () => new Set((await this.#owners(log)).values()).size === 2, TAKEOVER_MS_MAX);
      sender.start();
      for (let round = 1; round <= rounds; round += 1) {
        signal?.throwIfAborted();
        for (const kind of this.#options.processes)
          await this.#killOnce(kind === 'worker' ? (round % 2 === 1 ? 'worker-1' : 'worker-2') : kind, sender, runSql);
        progress(
          `  round ${String(round)} of ${String(rounds)}: ${String(sender.acknowledged)} events acknowledged, ${String(sender.retries)} attempts sent again`,
        );
      }
      if (this.#options.processes.includes('worker')) {
        await this.#takeover(log, sender, runSql, 'killed');
        await this.#takeover(log, sender, runSql, 'paused');
      }
      await sender.stop();
      const checks = await this.#finish(log, sender, runSql);
      breached = checks.some(({ breach }) => breach);
      const evidence = breached ? [...this.#timeline, ...(await doubledPositions(runSql)), `data and logs: ${this.#stack.folder}`] : [];
      await nc.close();
      return {
        kills: this.#kills,
        takeovers: this.#takeovers,
        acknowledged: sender.acknowledged,
        retries: sender.retries,
        checks,
        evidence,
      };
    } finally {
      await this.#stack.stop(breached);
    }
  }

  async #owners(log: Log): Promise<Map<string, string>> {
    const kv = await log.bucket('partitions');
    const owners = new Map<string, string>();
    for await (const key of await kv.keys('partition.*')) {
      const entry = await kv.get(key);
      if (entry?.operation === 'PUT') owners.set(key, entry.json<{ owner: string }>().owner);
    }
    return owners;
  }

  #note(what: string): void {
    this.#timeline.push(`${new Date().toISOString()} ${what}`);
  }

  /** A process that ended without being asked is a breach; it is started again so that the run can go on. */
  async #mend(): Promise<void> {
    this.#options.signal?.throwIfAborted();
    for (const name of PROCESSES) if (!this.#stack.isRunning(name)) await this.#stack.boot(name);
  }

  async #killOnce(name: ProcessName, sender: Sender, runSql: RunSql): Promise<void> {
    await pause(between(200, 1200));
    await this.#mend();
    const began = performance.now();
    this.#note(`kill -9 ${name}`);
    await this.#stack.kill(name);
    const acknowledged = sender.acknowledged;
    const back = pause(between(50, 800)).then(() => this.#stack.boot(name));
    const acknowledging = until(() => sender.acknowledged > acknowledged, RECOVER_MS_MAX);
    const landing = this.#landsAgain(runSql, began);
    await back;
    this.#kills.push({ process: name, acknowledged_after_ms: await acknowledging, landed_after_ms: await landing });
  }

  /** Rows that land after everything that had landed at the kill. */
  async #landsAgain(runSql: RunSql, began: number): Promise<number> {
    let before: number | null = null;
    await until(async () => {
      const now = Number(await runSql('SELECT count() FROM spans'));
      before ??= now;
      return now > before;
    }, RECOVER_MS_MAX);
    return performance.now() - began;
  }

  /** One of two workers dies, or stands still: the other must own everything soon, and land it. */
  async #takeover(log: Log, sender: Sender, runSql: RunSql, why: 'killed' | 'paused'): Promise<void> {
    await this.#mend();
    await until(async () => new Set((await this.#owners(log)).values()).size === 2, TAKEOVER_MS_MAX);
    const began = performance.now();
    this.#note(`worker-1 ${why}`);
    if (why === 'killed') await this.#stack.kill('worker-1');
    else this.#stack.pause('worker-1');
    const probes = Promise.all(Array.from({ length: this.#partitions }, (_, partition) => sender.probe(partition, this.#partitions)));
    const owned = await until(async () => {
      const owners = new Set((await this.#owners(log)).values());
      return owners.size === 1 && !owners.has('');
    }, TAKEOVER_MS_MAX);
    const traces = await probes;
    await until(
      async () =>
        Number(
          await runSql(`SELECT uniqExact(trace_id) FROM spans WHERE trace_id IN (${traces.map((trace) => `'${trace}'`).join(',')})`),
        ) === traces.length,
      TAKEOVER_MS_MAX,
    );
    this.#takeovers.push({ why, owned_ms: owned, probes_landed_ms: performance.now() - began });
    if (why === 'killed') {
      await this.#stack.boot('worker-1');
      return;
    }
    await pause(Math.max(0, this.#options.pauseMs - (performance.now() - began)));
    this.#stack.resume('worker-1');
    this.#note('worker-1 resumed');
    // Load goes on while the one that was paused finds out what it has lost.
    await pause(2000);
  }

  async #finish(log: Log, sender: Sender, runSql: RunSql): Promise<Check[]> {
    const { url } = this.#stack.address;
    await this.#mend();
    const wanted = [...sender.expected.spans.values()].reduce((sum, count) => sum + count, 0);
    const settled = await until(
      async () =>
        Number(await runSql('SELECT count() FROM spans')) >= wanted &&
        (await runSql('SELECT count() FROM span_texts_recent')) === '0' &&
        (await lagMessages(url)) === 0,
      SETTLE_MS_MAX,
    );
    await until(() => allCompleted(log, sender.expected), SETTLE_MS_MAX);
    const checks = await runChecks(runSql, log, url, sender.expected);
    const slow = this.#takeovers.filter(({ owned_ms }) => owned_ms > TAKEOVER_BAR_MS).length;
    const bare = (what: string, found: readonly string[]): Check => ({
      what,
      expected: '0',
      found: found.length === 0 ? '0' : `${String(found.length)}: ${[...new Set(found)].slice(0, 3).join('; ')}`,
      breach: found.length > 0,
    });
    return [
      ...checks,
      bare('faults of answers', sender.faults),
      bare('processes that ended by themselves', this.#stack.unexpected),
      { what: 'takeovers slower than 3 s', expected: '0', found: String(slow), breach: slow > 0 },
      {
        what: 'everything landed and searchable, seconds after the load',
        expected: `< ${String(SETTLE_MS_MAX / 1000)}`,
        found: (settled / 1000).toFixed(1),
        breach: settled >= SETTLE_MS_MAX,
      },
    ];
  }
}

/** Runs it on a stack of its own, which is gone afterwards. */
export const runChaos = (options: ChaosOptions): Promise<ChaosResult> => new Chaos(options).run();
