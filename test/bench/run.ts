// `npm run bench`: measures the service and prints one table of the results beside the promises.
// Starts a service of its own in a temporary folder unless --url names one; stops what it started,
// by pid, whatever happens.
import { loadavg } from 'node:os';
import { benchAdmission } from './admission.ts';
import { compare } from './compare.ts';
import { fillStore } from './fill.ts';
import { benchBudgets } from './budgets.ts';
import { benchCold } from './cold.ts';
import { benchErase } from './erase.ts';
import { benchFootprint } from './footprint.ts';
import { benchFreshness } from './freshness.ts';
import { benchGateway, IN_FRONT } from './gateway.ts';
import { benchFilled, benchGrowth } from './growth.ts';
import { benchIngest, benchSingle } from './ingest.ts';
import { benchJudges } from './judges.ts';
import { benchLoadedReads } from './loaded_reads.ts';
import { benchNeighbours } from './neighbours.ts';
import { clickhouseVersion, commitFacts, machineFacts, natsVersion } from './machine.ts';
import { benchMonitors } from './monitors.ts';
import { type Options, type Part, readCommand, USAGE, UsageError } from './options.ts';
import { benchPii } from './pii.ts';
import { writePlots } from './plots.ts';
import type { BenchPortal } from './portal_rows.ts';
import { benchProfile, PROFILED } from './profile.ts';
import { benchSampling, SAMPLED } from './sampling.ts';
import { benchScale } from './scale.ts';
import { mebibytes, sectionText, thousands, type Section } from './report.ts';
import { resultSection, RESULTS_SCHEMA, writeResults, type Results, type ResultSection } from './results.ts';
import { benchStarts } from './starts.ts';
import { sqlRunner } from './store.ts';
import { mergeFiles, printTable } from './table.ts';
import { startTarget, type Target } from './target.ts';
import { Vocabulary } from './vocabulary.ts';
import { benchWorker } from './worker.ts';
import { benchWebhooks } from './webhooks.ts';

/** Settings of the services that parts start. */
const SETTINGS: Partial<Record<Part, Record<string, string>>> = {
  // Syncing the disk for each KV record would take most of the time, and is not what is measured.
  control: { SERVICE_NATS_SYNC: '1s' },
  profile: PROFILED,
  sampling: SAMPLED,
  gateway: IN_FRONT,
  // No window of a browser opens beside the measured one.
  portal: { SERVICE_OPEN: 'false' },
};

/** The code of pages has types of its own, so it is imported by its address when it is asked for. */
const PORTAL_MODULE = '../browser/bench/portal.ts';

const progress = (line: string): void => void process.stderr.write(`${line}\n`);

/** Measures one part on a running service. */
async function measure(
  part: Exclude<Part, 'start' | 'worker' | 'scale'>,
  target: Target,
  options: Options,
  run: Run,
): Promise<Section[]> {
  const { vocabulary } = run;
  const { seconds, rate, shape, spans } = options;
  const clickhouseUrl = target.clickhouseUrl;
  const stored = () => {
    if (clickhouseUrl === null) throw new UsageError(`${part} looks into ClickHouse: name it by --clickhouse-url`);
    return clickhouseUrl;
  };
  switch (part) {
    case 'footprint':
      return [await benchFootprint({ target, seconds, progress, title: 'Idle, freshly started' })];
    case 'ingest': {
      const runs = rate === Infinity ? [rate] : [rate, Infinity];
      const sections: Section[] = [];
      for (const pace of runs)
        sections.push(
          await benchIngest({
            target,
            runSql: sqlRunner(stored()),
            vocabulary: vocabulary(),
            seconds,
            rate: pace,
            shape,
            progress,
          }),
        );
      return sections;
    }
    case 'profile':
      return [
        await benchProfile({ target, clickhouseUrl: stored(), vocabulary: vocabulary(), seconds, rate, progress }),
      ];
    case 'single':
      return [
        await benchSingle({
          target,
          runSql: sqlRunner(stored()),
          vocabulary: vocabulary(),
          seconds,
          rate: Infinity,
          progress,
        }),
      ];
    case 'freshness':
      return [
        await benchFreshness({
          target,
          vocabulary: vocabulary(),
          seconds,
          rate: rate === Infinity ? 5000 : rate / 2,
          progress,
        }),
      ];
    case 'budgets':
      return [await benchBudgets({ target, vocabulary: vocabulary(), seconds, progress })];
    case 'judges':
      return [await benchJudges({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, progress })];
    case 'monitors':
      return [
        await benchMonitors({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, progress }),
      ];
    case 'pii':
      return [await benchPii({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, progress })];
    case 'webhooks':
      return [await benchWebhooks({ target, seconds, progress })];
    case 'sampling':
      return [await benchSampling({ target, vocabulary: vocabulary(), seconds, progress })];
    case 'gateway':
      return [await benchGateway({ target, seconds, progress })];
    case 'neighbours':
      return [await benchNeighbours({ target, vocabulary: vocabulary(), seconds: seconds / 5, progress })];
    case 'reads':
      if (options.filled) return readFilled(target, stored(), options, run);
      return benchGrowth({
        target,
        clickhouseUrl: stored(),
        sizes: options.sizes,
        secondsLeft: run.secondsLeft,
        progress,
      });
    case 'cold': {
      progress(`cold: filling ${thousands(spans)} spans`);
      await fillStore(stored(), target.org, spans, progress);
      return [await benchCold({ clickhouseUrl: stored(), progress })];
    }
    case 'erase': {
      progress(`erase: filling ${thousands(spans)} spans`);
      await fillStore(stored(), target.org, spans, progress);
      return [await benchErase({ clickhouseUrl: stored(), progress })];
    }
    case 'portal': {
      const { benchPortal } = (await import(PORTAL_MODULE)) as { benchPortal: BenchPortal };
      return benchPortal({
        ...options.portal,
        target,
        vocabulary: vocabulary(),
        seconds,
        progress,
        stopping: run.stopping,
      });
    }
    case 'control':
      return [await benchAdmission(target, progress)];
  }
}

/** Reads a store as it is, and again beside a load if that is asked. */
async function readFilled(target: Target, clickhouseUrl: string, options: Options, run: Run): Promise<Section[]> {
  const filled = await benchFilled(target, clickhouseUrl, progress);
  if (options.beside === 0) return [filled];
  const [spans, rate, vocabulary] = [filled.spans ?? 0, options.beside, run.vocabulary()];
  try {
    return [filled, await benchLoadedReads({ target, vocabulary, spans, rate, progress })];
  } catch (error) {
    return [filled, notMeasured('reads beside a load', error)];
  }
}

/** A part that fails is a result too, and what was measured before it stays. */
function notMeasured(part: string, error: unknown): Section {
  console.error(error);
  process.exitCode = 1;
  const note = error instanceof Error ? error.message : String(error);
  return {
    title: `${part}: not measured`,
    rows: [{ what: part, value: 'not run', note: `failed: ${note}` }],
    data: null,
  };
}

/** State shared by the parts of a run. */
interface Run {
  vocabulary: () => Vocabulary;
  /** Seconds until --minutes are over. */
  secondsLeft: () => number;
  stopping: AbortSignal;
}

interface Measured {
  sections: ResultSection[];
  clickhouse: string | null;
}

/** Measures a part with a service of its own, so that none finds what another left. */
async function measurePart(part: Part, options: Options, run: Run, found: Measured): Promise<Section[]> {
  if (part === 'start') {
    if (options.running !== null) throw new UsageError('start takes services of its own: leave --url out');
    return [await benchStarts({ vocabulary: run.vocabulary(), stopping: run.stopping, progress })];
  }
  if (part === 'worker') return [await benchWorker(progress)];
  if (part === 'scale') {
    if (options.running !== null) throw new UsageError('scale takes services of its own: leave --url out');
    return benchScale({ ...options.scale, vocabulary: run.vocabulary(), stopping: run.stopping, progress });
  }
  progress(options.running === null ? `${part}: starting a service …` : `${part}: ${options.running.url}`);
  const target = options.running ?? (await startTarget(SETTINGS[part]));
  const onAbort = (): void => void target.stop().then(() => process.exit(130));
  try {
    if (run.stopping.aborted) return [];
    run.stopping.addEventListener('abort', onAbort);
    found.clickhouse ??= await clickhouseVersion(target.clickhouseUrl);
    return await measure(part, target, options, run);
  } finally {
    run.stopping.removeEventListener('abort', onAbort);
    await target.stop();
  }
}

/** Returns the sections of a part. If it fails, the following parts still run. */
async function sectionsOf(part: Part, options: Options, run: Run, found: Measured): Promise<Section[]> {
  try {
    return await measurePart(part, options, run, found);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return [notMeasured(part, error)];
  }
}

/**
 * @param onPart called after each part, so that hours of measuring survive a failure of the next
 * part
 */
async function measureAll(options: Options, stopping: AbortSignal, onPart: (found: Measured) => void): Promise<void> {
  let words: Vocabulary | null = null;
  const until = performance.now() + options.minutes * 60_000;
  const run: Run = {
    vocabulary: () => (words ??= new Vocabulary()),
    secondsLeft: () => (until - performance.now()) / 1000,
    stopping,
  };
  const found: Measured = { sections: [], clickhouse: null };
  for (const part of options.parts) {
    if (run.stopping.aborted) break;
    // A figure is only as good as the machine was idle.
    const [loadBefore, began] = [loadavg()[0] ?? 0, performance.now()];
    progress(`load average before: ${loadBefore.toFixed(1)}`);
    for (const section of await sectionsOf(part, options, run, found)) {
      found.sections.push(
        resultSection(part, section, { load_before: loadBefore, seconds: (performance.now() - began) / 1000 }),
      );
      console.log(`\n${sectionText(section)}`);
    }
    onPart(found);
  }
}

async function runParts(options: Options, stopping: AbortSignal): Promise<void> {
  const [at, machine] = [new Date().toISOString(), machineFacts()];
  console.log(
    `${machine.cpu}, ${machine.cores} cores, ${mebibytes(machine.memory_bytes)}, ${machine.platform} ${machine.kernel}, Node ${process.versions.node}; service and load generator share it. ${at.slice(0, 10)}`,
  );
  const run = { schema: RESULTS_SCHEMA, at, command: process.argv.slice(2), ...commitFacts(), machine } as const;
  const nats_server = await natsVersion();
  await measureAll(options, stopping, ({ sections, clickhouse }) => {
    const results: Results = { ...run, versions: { node: process.versions.node, nats_server, clickhouse }, sections };
    if (options.json !== undefined) writeResults(options.json, results);
    if (options.plots !== undefined) writePlots(options.plots, results);
  });
}

async function main(): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stop.abort();
    });
  }
  // The reader of the output is gone: the run still ends in order.
  process.stdout.on('error', () => {
    stop.abort();
  });
  const asked = readCommand(process.argv.slice(2));
  if (asked.command === 'help') console.log(USAGE);
  else if (asked.command === 'table') printTable(asked.options);
  else if (asked.command === 'merge') mergeFiles(asked.options);
  else if (asked.command === 'compare')
    process.exitCode = (await compare(asked.options, stop.signal, progress)) ? 1 : 0;
  else await runParts(asked.options, stop.signal);
}

try {
  await main();
} catch (error) {
  const usage =
    error instanceof UsageError ||
    (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  console.error(usage ? `${error.message}\n${USAGE}` : error);
  process.exitCode = 1;
}
