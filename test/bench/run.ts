// `npm run bench`: measures the service and prints one table of what it did beside what was promised.
// Starts a service of its own in a temporary folder unless --url names one; ends what it started, by pid, whatever happens.
import { cpus, loadavg, totalmem } from 'node:os';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { benchAdmission } from './admission.ts';
import { LARGE_TRACES, fillStore } from './fill.ts';
import { benchBudgets } from './budgets.ts';
import { benchCold } from './cold.ts';
import { benchErase } from './erase.ts';
import { benchFootprint } from './footprint.ts';
import { benchFreshness } from './freshness.ts';
import { benchGateway, IN_FRONT } from './gateway.ts';
import { benchIngest, benchSingle } from './ingest.ts';
import { benchJudges } from './judges.ts';
import { benchPii } from './pii.ts';
import { benchReads } from './reads.ts';
import { benchSampling, SAMPLED } from './sampling.ts';
import { sectionText, thousands, type Section } from './report.ts';
import { sqlRunner } from './store.ts';
import { runningTarget, startTarget, type Target } from './target.ts';
import { Vocabulary } from './vocabulary.ts';
import { benchWebhooks } from './webhooks.ts';

const USAGE = `usage: npm run bench [-- ingest|single|freshness|reads|footprint|control|budgets|webhooks|judges|pii|cold|erase|sampling|gateway|all] [options]
  --seconds 60        length of each run
  --rate 10000        events a second of the paced ingest run (max: as fast as acknowledged); freshness runs beside half of it
  --shape texts       texts (searchable prompt and response) or plain
  --spans 10000000    spans to fill the store with before the reads
  --json file         raw numbers
  --url … --key … --org org_local --clickhouse-url http://user:password@host:port/db    a running service instead of one of its own`;

const PARTS = [
  'footprint',
  'ingest',
  'single',
  'freshness',
  'reads',
  'control',
  'budgets',
  'webhooks',
  'judges',
  'pii',
  'cold',
  'erase',
  'sampling',
  'gateway',
] as const;
type Part = (typeof PARTS)[number];

/** Settings of the services that parts start. */
const SETTINGS: Partial<Record<Part, Record<string, string>>> = {
  // Filling KV with a sync of the disk for each record would be most of the time, and is not what is measured.
  control: { SERVICE_NATS_SYNC: '1s' },
  sampling: SAMPLED,
  gateway: IN_FRONT,
};

interface Options {
  parts: readonly Part[];
  seconds: number;
  rate: number;
  shape: 'texts' | 'plain';
  spans: number;
  json: string | undefined;
  running: Target | null;
}

class UsageError extends Error {}

function number(name: string, text: string): number {
  const value = text === 'max' ? Infinity : Number(text);
  if (!(value > 0)) throw new UsageError(`--${name} takes a number above 0; got ${text}`);
  return value;
}

function readOptions(args: string[]): Options | null {
  const text = (fallback: string) => ({ type: 'string', default: fallback }) as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seconds: text('60'),
      rate: text('10000'),
      shape: text('texts'),
      spans: text('10000000'),
      json: { type: 'string' },
      url: { type: 'string' },
      key: text(''),
      org: text('org_local'),
      'clickhouse-url': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return null;
  const names = positionals.length === 0 ? ['all'] : positionals;
  const unknown = names.find((name) => name !== 'all' && !PARTS.some((part) => part === name));
  if (unknown !== undefined) throw new UsageError(`there is no benchmark ${unknown}`);
  if (values.shape !== 'texts' && values.shape !== 'plain') throw new UsageError(`--shape takes texts or plain; got ${values.shape}`);
  return {
    parts: PARTS.filter((part) => names.includes(part) || names.includes('all')),
    seconds: number('seconds', values.seconds),
    rate: number('rate', values.rate),
    shape: values.shape,
    spans: number('spans', values.spans),
    json: values.json,
    running: values.url === undefined ? null : runningTarget(values.url, values.org, values.key, values['clickhouse-url'] ?? null),
  };
}

const progress = (line: string): void => void process.stderr.write(`${line}\n`);

/** One part on a service that is up. */
async function measure(part: Part, target: Target, options: Options, vocabulary: () => Vocabulary): Promise<Section[]> {
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
          await benchIngest({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, rate: pace, shape, progress }),
        );
      return sections;
    }
    case 'single':
      return [await benchSingle({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, rate: Infinity, progress })];
    case 'freshness':
      return [await benchFreshness({ target, vocabulary: vocabulary(), seconds, rate: rate === Infinity ? 5000 : rate / 2, progress })];
    case 'budgets':
      return [await benchBudgets({ target, vocabulary: vocabulary(), seconds, progress })];
    case 'judges':
      return [await benchJudges({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, progress })];
    case 'pii':
      return [await benchPii({ target, runSql: sqlRunner(stored()), vocabulary: vocabulary(), seconds, progress })];
    case 'webhooks':
      return [await benchWebhooks({ target, seconds, progress })];
    case 'sampling':
      return [await benchSampling({ target, vocabulary: vocabulary(), seconds, progress })];
    case 'gateway':
      return [await benchGateway({ target, seconds, progress })];
    case 'reads': {
      progress(`reads: filling ${thousands(spans)} spans`);
      const filled = await fillStore(stored(), target.org, spans, progress);
      const note = `${thousands(filled.spans)} spans of 90 days, ${String(LARGE_TRACES)} traces of 1,000`;
      progress(
        `  filled in ${thousands(filled.seconds)} s, merges done ${thousands(filled.settle_s)} s later; parts: ${JSON.stringify(filled.parts)}`,
      );
      return [await benchReads(target, note, progress)];
    }
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
    case 'control':
      return [await benchAdmission(target, progress)];
  }
}

/** Each part has a service of its own, so that none finds what another left. */
async function measureAll(options: Options, stopping: AbortSignal): Promise<Section[]> {
  let vocabulary: Vocabulary | null = null;
  const sections: Section[] = [];
  const isStopping = (): boolean => stopping.aborted;
  for (const part of options.parts) {
    // A figure is worth what the machine was doing beside it.
    progress(`load average before: ${(loadavg()[0] ?? 0).toFixed(1)}`);
    progress(options.running === null ? `${part}: starting a service …` : `${part}: ${options.running.url}`);
    const target = options.running ?? (await startTarget(SETTINGS[part] ?? {}));
    if (isStopping()) {
      await target.stop();
      break;
    }
    const onAbort = (): void => void target.stop().then(() => process.exit(130));
    stopping.addEventListener('abort', onAbort);
    try {
      for (const section of await measure(part, target, options, () => (vocabulary ??= new Vocabulary()))) {
        sections.push(section);
        console.log(`\n${sectionText(section)}`);
      }
    } finally {
      stopping.removeEventListener('abort', onAbort);
      await target.stop();
    }
  }
  return sections;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    console.log(USAGE);
    return;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stop.abort();
    });
  }
  // Whoever read the output is gone: end in order all the same.
  process.stdout.on('error', () => {
    stop.abort();
  });
  const machine = `${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${String(cpus().length)} cores, ${thousands(totalmem() / 1024 ** 3)} GiB, ${process.platform}, Node ${process.versions.node}`;
  console.log(`${machine}; service and load generator share it. ${new Date().toISOString().slice(0, 10)}`);
  const sections = await measureAll(options, stop.signal);
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify({ machine, at: new Date().toISOString(), sections }, null, 2)}\n`);
}

try {
  await main();
} catch (error) {
  const usage =
    error instanceof UsageError || (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  console.error(usage ? `${error.message}\n${USAGE}` : error);
  process.exitCode = 1;
}
