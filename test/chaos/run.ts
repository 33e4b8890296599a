// `npm run chaos`: the whole service in several processes under mixed load, one fault after the
// other, then the proof that nothing was lost or doubled. Exit code 1 when any check fails.
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { runLine } from '../bench/machine.ts';
import { markdownTable, ms } from '../bench/report.ts';
import { runChaos, type ChaosOptions, type ChaosResult } from './chaos.ts';
import { newTreesDir } from '../bench/trees.ts';
import { removeDir } from '../support/temp.ts';
import { FAULTS } from './faults.ts';
import { SMALL, WHOLE } from './stack.ts';
import { openVersion, thisVersion } from './versions.ts';

const USAGE = `usage: npm run chaos [-- --fault NAME,NAME|all] [--rounds 1] [--rate 400] [--around 8] [--hold SECONDS] [--takeover SECONDS] [--seed N]
                            [--stack whole|small] [--shards 1] [--streams 1] [--sync workers|inserts] [--from COMMIT|FOLDER] [--once] [--file runs.json] [--report FILE] [--keep]
  --fault    which faults, in this order; all of them without it
  --rounds   how often they are gone through
  --rate     events a second of the main load; OTLP, the gateway and an org with hard limits come on top
  --around   seconds of load before the first fault and after each
  --hold     seconds that each fault lasts, in place of its own time
  --takeover seconds after which a run fails if rows have not landed again in all partitions of a silent worker; 15 without it
  --stack    whole: 2 APIs, 3 workers, 3 nats-servers, ClickHouse, proxies between them; small: 1 API, 2 workers, 1 nats-server
  --shards   shards of ClickHouse, 1 to 4; faults of ClickHouse strike one of them
  --streams  streams of the ingest log, 1 to 8
  --sync     workers: rows are synced before each checkpoint, as beside the embedded engine; inserts: each by itself, as beside an engine elsewhere
  --from     older version of a rolling upgrade, with which the stack starts: a commit, or a folder with a tree; the newest commit whose product differs without it
  --once     check at the end only, not after each fault
  --file     agent runs whose texts are sent (as npm run demo takes them)
  --report   the tables into this file too
  --keep     leave data and logs also where nothing was breached
faults:
${FAULTS.map(({ name, what }) => `  ${name.padEnd(22)} ${what}`).join('\n')}`;

class UsageError extends Error {}

function readOptions(args: string[]): (ChaosOptions & { report?: string; from?: string }) | null {
  const text = (fallback: string) => ({ type: 'string', default: fallback }) as const;
  const { values } = parseArgs({
    args,
    options: {
      fault: text('all'),
      rounds: text('1'),
      rate: text('400'),
      around: text('8'),
      hold: { type: 'string' },
      takeover: { type: 'string' },
      seed: text(String(Date.now() % 1_000_000)),
      stack: text('whole'),
      shards: text('1'),
      streams: text('1'),
      sync: text('workers'),
      once: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      file: { type: 'string' },
      from: { type: 'string' },
      report: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return null;
  if (values.sync !== 'workers' && values.sync !== 'inserts')
    throw new UsageError(`--sync takes workers or inserts; got ${values.sync}`);
  if (values.stack !== 'whole' && values.stack !== 'small')
    throw new UsageError(`--stack takes whole or small; got ${values.stack}`);
  const streams = Number(values.streams);
  if (!(Number.isInteger(streams) && streams >= 1 && streams <= 8))
    throw new UsageError(`--streams takes a number from 1 to 8; got ${values.streams}`);
  const shards = Number(values.shards);
  if (!(Number.isInteger(shards) && shards >= 1 && shards <= 4))
    throw new UsageError(`--shards takes a number from 1 to 4; got ${values.shards}`);
  const stack = {
    ...(values.stack === 'whole' ? WHOLE : SMALL),
    shards,
    syncedByWorkers: values.sync === 'workers',
    env: { SERVICE_LOG_STREAMS: values.streams },
  };
  const fits = FAULTS.filter(
    ({ needs }) =>
      (needs?.cluster !== true || stack.nats > 1) &&
      (needs?.proxied !== true || stack.proxied) &&
      (needs?.shards !== true || stack.shards > 1) &&
      stack.apis >= (needs?.apis ?? 1),
  );
  const wanted = values.fault.split(',').map((name) => name.trim());
  const chosen =
    values.fault === 'all'
      ? fits.filter(({ needs }) => needs?.olderVersion !== true || values.from !== undefined)
      : wanted.flatMap((name) => fits.find((fault) => fault.name === name) ?? []);
  // The stack starts with the older version, so what needs it comes first.
  const faults = chosen.toSorted((a, b) => Number(b.needs?.olderVersion ?? 0) - Number(a.needs?.olderVersion ?? 0));
  if (values.fault !== 'all' && faults.length !== wanted.length)
    throw new UsageError(`--fault takes ${fits.map(({ name }) => name).join(', ')} or all; got ${values.fault}`);
  const [rounds, rate, around, seed] = [
    Number(values.rounds),
    Number(values.rate),
    Number(values.around),
    Number(values.seed),
  ];
  const hold = values.hold === undefined ? null : Number(values.hold);
  const takeover = values.takeover === undefined ? null : Number(values.takeover);
  const positive = [rounds, rate, around, hold ?? 1, takeover ?? 1].every((number) => number > 0);
  if (!(positive && rounds >= 1 && Number.isInteger(seed)))
    throw new UsageError('--rounds, --rate, --around, --hold, --takeover and --seed take numbers above 0');
  return {
    stack,
    faults,
    rounds,
    rate,
    aroundMs: around * 1000,
    holdMs: hold === null ? null : hold * 1000,
    takeoverMsMax: takeover === null ? null : takeover * 1000,
    checkEach: !values.once,
    seed,
    keep: values.keep,
    ...(values.file === undefined ? {} : { file: values.file }),
    ...(values.from === undefined ? {} : { from: values.from }),
    ...(values.report === undefined ? {} : { report: path.resolve(values.report) }),
    progress: (line) => void process.stderr.write(`${line}\n`),
  };
}

const time = (value: number | null): string => (value === null ? 'never' : `${ms(value)} ms`);

/** Returns a line for each fault that has a bound of takeovers: how long they took. */
function takeoverLines(struck: ChaosResult['struck']): string[] {
  return [...Map.groupBy(struck, ({ fault }) => fault)].flatMap(([fault, rounds]) => {
    const max = rounds[0]?.takeover_ms_max ?? null;
    const times = rounds
      .flatMap(({ takeover }) => (takeover?.complete === true ? [takeover.ms] : []))
      .toSorted((a, b) => a - b);
    if (max === null || times.length === 0) return [];
    const [median, slowest] = [times[Math.floor(times.length / 2)] ?? null, times.at(-1) ?? null];
    return [
      `${fault}: rows landed again in all partitions of the silent worker after ${time(median)} in the median and ${time(slowest)} at most, in ${times.length} of ${rounds.length} rounds; ${time(max)} are allowed.`,
    ];
  });
}

/** Prints the result as tables. */
function report(
  { struck, acknowledged, retries, checks, evidence }: ChaosResult,
  { seed, rate, stack, aroundMs, versions }: ChaosOptions,
  began: string,
): string {
  const rows = struck.map((one) => [
    one.fault,
    one.acknowledged_during.toLocaleString('en-US'),
    time(one.acknowledged_after_ms),
    time(one.silent_ms),
    time(one.landed_after_ms),
    one.takeover === null ? '' : `${one.takeover.complete ? '' : 'over '}${time(one.takeover.ms)}`,
    time(one.no_lag_after_ms),
    one.settled_ms === null ? '' : `${(one.settled_ms / 1000).toFixed(1)} s`,
    one.calls === null ? '' : `${one.calls.failures} of ${one.calls.made.toLocaleString('en-US')}`,
    one.breaches.length === 0
      ? one.settled_ms === null
        ? ''
        : '0'
      : `${one.breaches.length}: ${one.breaches.join('; ')}`,
  ]);
  const head = [
    'fault',
    'acknowledged during',
    'next ack',
    'longest without',
    'next landing',
    'all partitions of a silent worker land again',
    `lag 0 after healing and ${aroundMs / 1000} s of load`,
    'all told after load',
    'requests that failed, where none may',
    'breaches',
  ];
  const checkRows = checks.map(({ what, expected, found, breach }) => [
    breach ? 'BREACH' : 'ok',
    what,
    expected,
    found,
  ]);
  const load = loadavg().map((one) => one.toFixed(1));
  return [
    '# Faults on the service under load',
    '',
    `${runLine(began)}. ${stack.apis} APIs, ${stack.workers} workers, ${stack.nats} nats-servers, ${stack.shards} shards of ClickHouse, ${stack.env?.['SERVICE_LOG_STREAMS'] ?? '1'} streams of the log; load of the machine ${load.join(' ')}.`,
    '',
    `${acknowledged.toLocaleString('en-US')} events acknowledged at ${rate} a second, ${retries.toLocaleString('en-US')} attempts sent again; seed ${seed}.`,
    '',
    ...(versions === undefined ? [] : [`Upgraded from ${versions.older.name} to ${versions.newer.name}.`, '']),
    markdownTable(head, rows),
    '',
    ...takeoverLines(struck).flatMap((line) => [line, '']),
    markdownTable(['', 'check, after the last fault', 'expected', 'found'], checkRows),
    ...(evidence.length === 0 ? [] : ['', ...evidence]),
  ].join('\n');
}

/** Runs the faults and prints the report. Returns the exit code. */
async function run(options: ChaosOptions & { report?: string; from?: string }, trees: string): Promise<number> {
  const began = new Date().toISOString();
  const needsOlder = options.faults.some(({ needs }) => needs?.olderVersion === true);
  const versions = needsOlder
    ? { older: openVersion(options.from, path.join(trees, 'older'), options.progress), newer: thisVersion() }
    : undefined;
  const all = { ...options, ...(versions === undefined ? {} : { versions }), signal: stop.signal };
  const result = await runChaos(all);
  const text = report(result, all, began);
  console.log(text);
  if (options.report !== undefined) writeFileSync(options.report, `${text}\n`);
  return result.struck.some(({ breaches }) => breaches.length > 0) ? 1 : 0;
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
  });
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) console.log(USAGE);
  else {
    if (options.report !== undefined) mkdirSync(path.dirname(options.report), { recursive: true });
    const trees = newTreesDir();
    try {
      process.exitCode = await run(options, trees);
    } finally {
      removeDir(trees);
    }
  }
} catch (error) {
  const usage =
    error instanceof UsageError ||
    (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  console.error(stop.signal.aborted ? 'stopped' : usage ? `${error.message}\n${USAGE}` : error);
  process.exitCode = stop.signal.aborted ? 130 : 1;
}
// An aborted load would continue its requests.
if (stop.signal.aborted) process.exit();
