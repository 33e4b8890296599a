// Faults under load, one after the other, then the proof that nothing was lost or doubled. In: the
// faults, the stack, the load. Out: what happened and every check; throws only when the harness
// itself fails.
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog, type Log } from '../../ops/platform/nats/open_log.ts';
import { seededRandom } from '../bench/vocabulary.ts';
import { sqlRunner, type RunSql } from '../bench/store.ts';
import { allCompleted, doubledPositions, EventsRead, lagMessages, runChecks, type Check } from './checks.ts';
import { pause } from './client.ts';
import { SmallDisk } from './disk.ts';
import type { Fault } from './faults.ts';
import { Load, startAround, type Around } from './load.ts';
import { Stack, type ProcessName, type StackOptions } from './stack.ts';
import type { Calls } from './traffic.ts';
import { UPGRADE_ENV } from './upgrade.ts';
import type { Version } from './versions.ts';
import { Watch, type Times } from './watch.ts';

export interface ChaosOptions {
  stack: StackOptions;
  faults: readonly Fault[];
  /** The versions of a rolling upgrade. The stack starts with the older one; unset without such a fault. */
  versions?: { older: Version; newer: Version };
  rounds: number;
  /** Events a second of the main load. */
  rate: number;
  /** Milliseconds of load before the first fault and after each. */
  aroundMs: number;
  /** How long each fault lasts; null for the fault's own duration. */
  holdMs: number | null;
  /** Bound of takeovers in place of the fault's own, in milliseconds; null for that one. */
  takeoverMsMax: number | null;
  /** Checks after each fault, not only at the end. */
  checkEach: boolean;
  seed: number;
  /** File of runs whose texts are sent. */
  file?: string;
  /** Keeps data and logs in any case. */
  keep?: boolean;
  progress: (line: string) => void;
  /** When aborted everything is stopped, and the run rejects. */
  signal?: AbortSignal;
}

/** The effects of one fault. */
export interface Struck extends Times {
  fault: string;
  /**
   * Milliseconds after the load until everything had landed and was reported; null when nothing was
   * checked.
   */
  settled_ms: number | null;
  /** Bound of a takeover after this fault, in milliseconds; null without one. */
  takeover_ms_max: number | null;
  /** Requests during the fault, and those that failed; null where they may fail. */
  calls: Calls | null;
  breaches: string[];
}

export interface ChaosResult {
  struck: Struck[];
  acknowledged: number;
  retries: number;
  /** The last checks. */
  checks: Check[];
  /** When a check fails: the times of all events, the rows concerned, the folder that was kept. */
  evidence: string[];
}

const SETTLE_MS_MAX = 240_000;
const RECOVER_MS_MAX = 120_000;
const SETTLE_LOOK_MS = 250;
/** An API process that is killed had at most this much unrecorded of what it had answered. */
const UNRECORDED_MS = 5000;
const EVIDENCE_ROWS_MAX = 20;
const DISK_MIB = 2048;

class Chaos {
  readonly #options: ChaosOptions;
  readonly #stack: Stack;
  readonly #disk: SmallDisk | null;
  readonly #around: Around;
  readonly #struck: Struck[] = [];
  /** What happened, with its times. */
  readonly #timeline: string[] = [];
  readonly #random: () => number;

  constructor(options: ChaosOptions, around: Around, disk: SmallDisk | null) {
    this.#options = options;
    this.#around = around;
    this.#disk = disk;
    this.#stack = new Stack({
      ...options.stack,
      ...(options.versions === undefined ? {} : { root: options.versions.older.root }),
      env: {
        ...around.env,
        ...(options.versions === undefined ? {} : UPGRADE_ENV),
        ...options.stack.env,
        ...(disk === null ? {} : { SERVICE_DISK_GUARD_DIR: disk.folder }),
      },
      ...(disk === null ? {} : { folder: disk.folder }),
    });
    this.#random = seededRandom(options.seed);
  }

  async run(): Promise<ChaosResult> {
    const { rate, rounds, signal, seed, file, aroundMs, faults } = this.#options;
    let breached = false;
    try {
      await this.#stack.start();
      const { address } = this.#stack;
      const nc = await connectNats({ url: address.natsUrl, name: 'chaos', waitMs: 10_000 });
      const log = await openLog(nc, { replicas: this.#stack.options.nats, logBytesMax: 16 * 1024 ** 3 });
      const sources: Sources = { runSql: sqlRunner(address.clickhouseUrl), log, events: new EventsRead(log) };
      const load = await Load.open(address, this.#around, { rate, seed, ...(file === undefined ? {} : { file }) });
      // The workers watch the judges: events sent from now on are judged.
      await pause(1000);
      load.start();
      await pause(aroundMs);
      let checks: Check[] = [];
      for (let round = 1; round <= rounds; round += 1)
        for (const [index, fault] of faults.entries()) {
          signal?.throwIfAborted();
          const last = round === rounds && index === faults.length - 1;
          const checked = this.#options.checkEach || last;
          const struck = await this.#strike(fault, load, sources, checked);
          if (checked) {
            checks = await this.#settle(struck, load, sources);
            if (!last) load.start();
          }
          this.#options.progress(
            [
              `  ${fault.name}: ${load.acknowledged} requests acknowledged so far, ${load.sender.retries} sent again; ${struck.breaches.length === 0 ? 'no breach' : struck.breaches.join('; ')}`,
              ...(struck.breaches.length === 0 ? [] : [...this.#timeline, ...this.#evidence(checks)]),
            ].join('\n    '),
          );
        }
      breached = this.#struck.some(({ breaches }) => breaches.length > 0);
      const evidence = breached
        ? [
            ...this.#timeline,
            ...(await doubledPositions(sources.runSql)),
            ...this.#evidence(checks),
            `data and logs: ${this.#stack.folder}`,
          ]
        : [];
      await nc.close();
      return { struck: this.#struck, acknowledged: load.acknowledged, retries: load.sender.retries, checks, evidence };
    } finally {
      await this.#stack.stop(breached || this.#options.keep);
    }
  }

  /** Stops what runs, and leaves nothing behind. */
  stop(): Promise<void> {
    return this.#stack.stop();
  }

  #note(what: string): void {
    this.#timeline.push(`${new Date().toISOString()} ${what}`);
  }

  #evidence(checks: readonly Check[]): string[] {
    return checks
      .filter(({ breach }) => breach)
      .flatMap(({ what, rows = [] }) => rows.slice(0, EVIDENCE_ROWS_MAX).map((row) => `${what}: ${row}`));
  }

  async #strike(fault: Fault, load: Load, { runSql, log }: Sources, checks: boolean): Promise<Struck> {
    const apis = this.#stack.named('api');
    const watch = new Watch({
      urls: this.#stack.address.urls,
      runSql,
      log,
      acknowledged: () => load.acknowledged,
      drains: fault.drains === true,
    });
    const killed = (processes: readonly ProcessName[]): void => {
      for (const name of processes)
        if (apis.includes(name)) load.gateway.excuse(apis.indexOf(name), performance.now() - UNRECORDED_MS);
    };
    // A process that ended by itself is a breach; it is started again so that the run can continue.
    await this.#stack.bootAll();
    const ground = {
      stack: this.#stack,
      log,
      random: this.#random,
      disk: this.#disk,
      traffic: this.#stack.address.traffic,
      versions: this.#options.versions ?? null,
      note: (what: string) => {
        this.#note(what);
      },
      killed,
      struck: (what: string) => {
        this.#note(what);
        watch.struck();
      },
    };
    const { traffic } = ground;
    if (fault.noFailures === true) {
      traffic.open();
      load.reads.start();
    }
    await fault.run(ground, this.#options.holdMs ?? fault.holdMs);
    this.#note(`${fault.name} healed`);
    watch.healed();
    await watch.moving(RECOVER_MS_MAX);
    await pause(this.#options.aroundMs);
    watch.quiet();
    await load.reads.stop();
    const calls = fault.noFailures === true ? await traffic.close() : null;
    if (checks) await load.stop();
    // Under load there may always be a small lag: without checks it is not waited for.
    const times = await watch.end(checks ? RECOVER_MS_MAX : 0);
    const takeoverMsMax =
      fault.takeoverMsMax === undefined ? null : (this.#options.takeoverMsMax ?? fault.takeoverMsMax);
    const struck: Struck = {
      fault: fault.name,
      ...times,
      takeover_ms_max: takeoverMsMax,
      calls,
      settled_ms: null,
      breaches: [...lateTakeover(takeoverMsMax, times), ...failedCalls(calls)],
    };
    this.#struck.push(struck);
    return struck;
  }

  /** After the end of the load, waits until nothing changes, and checks everything. */
  async #settle(struck: Struck, load: Load, sources: Sources): Promise<Check[]> {
    const { runSql, log, events } = sources;
    const { url } = this.#stack.address;
    await this.#stack.bootAll();
    const began = performance.now();
    const steps: [what: string, holds: () => Promise<boolean>][] = [
      ['landed', async () => Number(await runSql('SELECT count() FROM spans')) >= load.rows],
      ['no lag', async () => (await lagMessages(url)) === 0],
      ['searchable', async () => (await runSql('SELECT count() FROM span_texts_recent')) === '0'],
      ['complete', () => allCompleted(events, load.traces)],
      ['budgets agree', () => load.budgetsAgree(runSql)],
      ['webhooks delivered', async () => (await load.webhooksMissing(events)) === 0],
    ];
    for (const [what, holds] of steps) {
      const held = await until(holds, SETTLE_MS_MAX - (performance.now() - began), SETTLE_LOOK_MS);
      this.#note(
        `${what}: ${held ? 'yes' : 'NO'}, ${((performance.now() - began) / 1000).toFixed(1)} s after the load`,
      );
    }
    struck.settled_ms = performance.now() - began;
    const bare = (what: string, found: readonly string[]): Check => ({
      what,
      expected: '0',
      found: found.length === 0 ? '0' : `${found.length}: ${[...new Set(found)].slice(0, 3).join('; ')}`,
      breach: found.length > 0,
    });
    const checks = [
      ...(await runChecks({ runSql, log, events, url }, load.sender.expected, load.traces)),
      ...(await load.checks(runSql, events)),
      bare('faults of answers', load.faults),
      bare('processes that ended by themselves', this.#stack.unexpected),
    ];
    struck.breaches.push(
      ...checks
        .filter(({ breach }) => breach)
        .map(({ what, expected, found }) => `${what}: ${found} instead of ${expected}`),
    );
    return checks;
  }
}

/** Returns a breach if the partitions of a silent worker landed rows later than they must. */
function lateTakeover(takeoverMsMax: number | null, { takeover }: Times): string[] {
  if (takeover === null || takeoverMsMax === null || takeover.ms <= takeoverMsMax) return [];
  const ms = Math.round(takeover.ms);
  return [`the partitions of the silent worker landed no rows for ${ms} ms instead of ${takeoverMsMax} ms at most`];
}

/** Returns a breach if requests failed that must not fail. */
function failedCalls(calls: Calls | null): string[] {
  if (calls === null || calls.failures === 0) return [];
  return [`${calls.failures} of ${calls.made} requests failed: ${calls.failed.slice(0, 5).join('; ')}`];
}

interface Sources {
  runSql: RunSql;
  log: Log;
  events: EventsRead;
}

/**
 * Returns whether the condition became true within the time. A check that throws counts as not yet.
 */
async function until(holds: () => Promise<boolean>, msMax: number, everyMs: number): Promise<boolean> {
  const began = performance.now();
  for (;;) {
    if (await holds().catch(() => false)) return true;
    if (performance.now() - began > msMax) return false;
    await pause(everyMs);
  }
}

/** Runs the faults on a stack of its own, which is removed unless there was a breach. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const disk = options.faults.some(({ needs }) => needs?.disk === true) ? new SmallDisk(DISK_MIB) : null;
  const around = await startAround();
  const chaos = new Chaos(options, around, disk);
  const aborted = Promise.withResolvers<never>();
  options.signal?.addEventListener('abort', () => {
    aborted.reject(new Error('aborted'));
  });
  try {
    return await Promise.race([chaos.run(), aborted.promise]);
  } finally {
    if (options.signal?.aborted === true) await chaos.stop();
    await around.close();
    disk?.close();
  }
}
