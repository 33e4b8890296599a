// `npm run soak`: the whole service by its start command, for hours, under mixed load and with
// restarts; then a report of what grew. Ends in order on Ctrl-C, with a report of what there is.
// Exit code 1 when a bound was broken.
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runLine } from '../bench/machine.ts';
import { percentile, thousands } from '../bench/report.ts';
import { sqlRunner } from '../bench/store.ts';
import { laneTarget, newPlace, startAt, type Target } from '../bench/target.ts';
import { Vocabulary } from '../bench/vocabulary.ts';
import { diskFigures, processFigures, readService, readStore, type Sample } from './figures.ts';
import { verdictTable, writeReport } from './report.ts';
import { Sender } from './sender.ts';
import { isBreach, verdictsOf } from './verdicts.ts';

const USAGE = `usage: npm run soak [-- --hours 2] [--rate 5000] [--kill-minutes 15] [--restart-minutes 60] [--out data/soak]
  --hours            length of the run
  --rate             events a second
  --kill-minutes     a kill -9 of one process this often, each in turn; 0: never
  --restart-minutes  everything is stopped and started in order this often; 0: never
  --out              folder of the report`;

const SAMPLE_MS = 10_000;
/**
 * Samples between two readings of every file: one costs more than the rest of a sample together.
 */
const DISK_EVERY = 6;
const PRINT_EVERY = 6;
/** The ingest log has a lower bound than by default, so that a run sees it full and emptied. */
const LOG_BYTES_MAX = 2 * 1024 ** 3;
/** Maximum bytes of the service's own output before it is rotated. */
const START_LOG_BYTES_MAX = 16 * 1024 ** 2;
/** At the end: time without a landed row after which the run stops waiting. */
const LAND_STILL_MS = 120_000;
const KILLED = ['worker', 'api', 'nats-server', 'clickhouse'] as const;

class UsageError extends Error {}

interface Options {
  seconds: number;
  rate: number;
  killS: number;
  restartS: number;
  out: string;
}

function readOptions(args: string[]): Options | null {
  const text = (fallback: string) => ({ type: 'string', default: fallback }) as const;
  const { values } = parseArgs({
    args,
    options: {
      hours: text('2'),
      rate: text('5000'),
      'kill-minutes': text('15'),
      'restart-minutes': text('60'),
      out: text('data/soak'),
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return null;
  const number = (name: 'hours' | 'rate' | 'kill-minutes' | 'restart-minutes', least: number): number => {
    const value = Number(values[name]);
    if (!(value >= least) || values[name] === '')
      throw new UsageError(`--${name} takes a number, ${least} or more; got ${values[name]}`);
    return value;
  };
  return {
    seconds: number('hours', 0.01) * 3600,
    rate: number('rate', 10),
    killS: (number('kill-minutes', 0) || Infinity) * 60,
    restartS: (number('restart-minutes', 0) || Infinity) * 60,
    out: path.resolve(values.out),
  };
}

const progress = (line: string): void => void process.stderr.write(`${line}\n`);
const now = (): number => performance.now() / 1000;

class Soak {
  readonly #options: Options;
  readonly #stopping: AbortSignal;
  readonly #samples: Sample[] = [];
  readonly #events: { at_s: number; what: string }[] = [];
  #restarts = 0;
  #disk: Record<string, number> = {};

  constructor(options: Options, stopping: AbortSignal) {
    this.#options = options;
    this.#stopping = stopping;
  }

  /** @returns whether a bound was broken */
  async run(): Promise<boolean> {
    const { seconds, rate, out } = this.#options;
    mkdirSync(out, { recursive: true });
    const place = await newPlace();
    const env = { SERVICE_LOG_MAX_BYTES: String(LOG_BYTES_MAX) };
    const began = new Date().toISOString();
    progress('starting a service …');
    let target = await startAt(place, env);
    try {
      const sender = new Sender({ target: laneTarget(target), org: target.org, rate, vocabulary: new Vocabulary() });
      sender.start();
      const beganS = now();
      let [killAt, restartAt] = [beganS + this.#options.killS, beganS + this.#options.restartS];
      for (let tick = 0; now() - beganS < seconds && !this.#stopping.aborted; tick += 1) {
        if (now() >= restartAt) {
          restartAt = now() + this.#options.restartS;
          this.#note(now() - beganS, 'everything, in order');
          await this.#sample(target, sender, now() - beganS, true);
          this.#restarts += processFigures(target.pid ?? 0).filter(({ part }) => part !== 'other').length;
          await target.stop();
          rotate(path.join(place.dataDir, 'start.log'));
          target = await startAt(place, env);
        } else if (now() >= killAt) {
          killAt = now() + this.#options.killS;
          this.#kill(target, now() - beganS);
        }
        await this.#sample(target, sender, now() - beganS, tick % DISK_EVERY === 0);
        if (tick % PRINT_EVERY === 0) this.#print();
        await this.#rest(beganS + ((tick + 1) * SAMPLE_MS) / 1000);
      }
      const lasted = now() - beganS;
      progress('the load ends; waiting until all of it has landed …');
      await sender.stop();
      const landed = await this.#landed(target, sender.acknowledged);
      await this.#sample(target, sender, now() - beganS, true);
      const outcome = {
        acknowledged: sender.acknowledged,
        landed,
        abandoned: sender.abandoned,
        faults: sender.faults,
        log_bytes_max: LOG_BYTES_MAX,
        restarts: this.#restarts,
      };
      const verdicts = verdictsOf(this.#samples, outcome);
      const where = writeReport(out, {
        run_line: runLine(began),
        seconds: lasted,
        rate,
        events: this.#events,
        outcome,
        verdicts,
        samples: this.#samples,
      });
      console.log(`${verdictTable(verdicts)}\n\n${where}`);
      return isBreach(verdicts);
    } finally {
      await target.stop();
      rmSync(place.dataDir, { recursive: true, force: true });
    }
  }

  #note(at_s: number, what: string): void {
    this.#events.push({ at_s, what });
    progress(`  ${(at_s / 60).toFixed(1)} min  restart: ${what}`);
  }

  /** Kills the next process in turn with kill -9; the supervisor restarts it. */
  #kill(target: Target, at_s: number): void {
    const part = KILLED[this.#events.filter(({ what }) => what.startsWith('kill')).length % KILLED.length];
    const victim = processFigures(target.pid ?? 0).find((one) => one.part === part);
    if (part === undefined || victim === undefined) return;
    this.#restarts += 1;
    this.#note(at_s, `kill -9 ${part}`);
    process.kill(victim.pid, 'SIGKILL');
  }

  async #rest(untilS: number): Promise<void> {
    while (now() < untilS && !this.#stopping.aborted)
      await new Promise((resolve) => setTimeout(resolve, Math.min(250, Math.max(1, (untilS - now()) * 1000))));
  }

  async #sample(target: Target, sender: Sender, at_s: number, disk: boolean): Promise<void> {
    if (disk) this.#disk = diskFigures(target.dataDir ?? '');
    const latencies = sender.takeLatencies();
    const acknowledged = sender.acknowledged;
    const [service, store] = await Promise.all([
      readService(target.url),
      readStore(sqlRunner(target.clickhouseUrl ?? '')),
    ]);
    this.#samples.push({
      at_s,
      restarts: this.#restarts,
      acknowledged,
      retries: sender.retries,
      ack_p50_ms: percentile(latencies, 0.5),
      ack_p99_ms: percentile(latencies, 0.99),
      processes: processFigures(target.pid ?? 0),
      disk_bytes: disk ? this.#disk : {},
      ...service,
      ...store,
    });
  }

  #print(): void {
    const last = this.#samples.at(-1);
    if (last === undefined) return;
    const memory = last.processes
      .map(({ part, rss_bytes }) => `${part} ${Math.round(rss_bytes / 1024 ** 2)}`)
      .join(', ');
    progress(
      `  ${(last.at_s / 60).toFixed(1)} min  acknowledged ${thousands(last.acknowledged)}  landed ${thousands(last.landed)}  lag ${last.lag_seconds.toFixed(1)} s  ack p99 ${last.ack_p99_ms.toFixed(0)} ms  MiB: ${memory}`,
    );
  }

  /**
   * Returns the spans in the store once they are as many as were acknowledged, or once no more
   * arrive.
   */
  async #landed(target: Target, acknowledged: number): Promise<number> {
    const runSql = sqlRunner(target.clickhouseUrl ?? '');
    let [landed, movedAt] = [0, performance.now()];
    while (performance.now() - movedAt < LAND_STILL_MS) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const now = (await readStore(runSql)).landed;
      // Twice the same number: nothing follows.
      if (now >= acknowledged && now === landed) break;
      if (now > landed) [landed, movedAt] = [now, performance.now()];
    }
    return landed;
  }
}

/** Keeps one previous file and begins a new one. */
function rotate(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) < START_LOG_BYTES_MAX) return;
  renameSync(file, `${file}.1`);
  writeFileSync(file, '', { mode: 0o600 });
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stop.abort();
  });
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) console.log(USAGE);
  else if (await new Soak(options, stop.signal).run()) process.exitCode = 1;
} catch (error) {
  const usage =
    error instanceof UsageError ||
    (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  console.error(usage ? `${error.message}\n${USAGE}` : error);
  process.exitCode = 1;
}
