// The command line of the benchmark.
import { parseArgs } from 'node:util';
import { PORTAL_SPANS, PORTAL_SPANS_MAX, PORTAL_SPANS_MIN, type PortalOptions } from './portal_rows.ts';
import { parseSizes } from './sizes.ts';
import { runningTarget, type Target } from './target.ts';

export const PARTS = [
  'footprint',
  'start',
  'ingest',
  'profile',
  'single',
  'freshness',
  'reads',
  'control',
  'budgets',
  'webhooks',
  'judges',
  'monitors',
  'pii',
  'cold',
  'erase',
  'sampling',
  'gateway',
  'neighbours',
  'portal',
  'worker',
  'scale',
] as const;
export type Part = (typeof PARTS)[number];
/** Parts that run only when they are named. They compare set-ups and measure no promise. */
const NAMED_ONLY: readonly Part[] = ['scale'];

export const USAGE = `usage: npm run bench [-- ${PARTS.join('|')}|all] [options]
  --sizes 1e6,1e7     spans in the store at which the reads are run; it grows from one to the next (reads alone: 1e7)
  --filled            reads measures the store of --url as it is, without filling it
  --beside 5000       reads with --filled: list, costs and trees again while this many events a second arrive
  --minutes 90        a size that would not be read within this time is left out
  --seconds 60        length of each run
  --rate 10000        events a second of the paced ingest run (max: as fast as acknowledged); freshness runs beside half of it
  --shape texts       texts (searchable prompt and response) or plain
  --spans 1000000     spans that cold and erase fill the store with
  --spans 1000,10000,50000    sizes of the traces that portal opens, in a headless Chromium
  --runs 30           runs of each row of portal
  --stored 1e7        portal first fills the store with this many spans
  --ingest            portal also measures ingest with and without an open page
  --login link        of portal with --url: a link that npm run login prints
  --seconds 30, --rate 4000, --rounds 1    of scale, which all leaves out: 1 and 2 shards, 1 and 4 streams, each under this load
  --json file         all numbers (test/bench/results.ts says what is in it)
  --plots folder      charts of how the reads grow with the store, as SVG
  --url … --key … --org org_local --clickhouse-url http://user:password@host:port/db    a running service instead of one of its own
npm run bench -- table results.json [--page ops/docs/benchmarks.md] [--plots folder]
                      the tables of the benchmark page from results; writes it between its markers, and the charts
npm run bench -- merge results.json more.json …
                      puts the parts of other runs on this machine into results, in place of their own
npm run bench -- compare <commit-a> <commit-b> [--parts ingest,single,reads] [--rounds 5] [--tolerance 0.1] [--seconds 20] [--spans 504000] [--json file]
                      whether b is slower than a, on this machine, in turns; exit code 1 when it is. A commit of . is the tree as it lies here`;

export interface Options {
  parts: readonly Part[];
  sizes: readonly number[];
  minutes: number;
  seconds: number;
  rate: number;
  shape: 'texts' | 'plain';
  spans: number;
  json: string | undefined;
  plots: string | undefined;
  running: Target | null;
  /** The store of the running service is read as it is. */
  filled: boolean;
  /** Events a second that arrive beside the second run of the reads; 0: no such run. */
  beside: number;
  portal: PortalOptions;
  scale: ScaleOptions;
}

/** The load of each set-up that scale compares. */
export interface ScaleOptions {
  seconds: number;
  /** Events a second, which every set-up must sustain. */
  rate: number;
  /** How often each set-up is measured. */
  rounds: number;
}

export const COMPARED = ['ingest', 'single', 'reads'] as const;
export type ComparedPart = (typeof COMPARED)[number];

export interface CompareOptions {
  commits: readonly [string, string];
  parts: readonly ComparedPart[];
  rounds: number;
  tolerance: number;
  seconds: number;
  spans: number;
  json: string | undefined;
}

export interface TableOptions {
  results: string;
  page: string | undefined;
  plots: string | undefined;
}

export interface MergeOptions {
  into: string;
  from: readonly string[];
}

export type Command =
  | { command: 'help' }
  | { command: 'run'; options: Options }
  | { command: 'table'; options: TableOptions }
  | { command: 'merge'; options: MergeOptions }
  | { command: 'compare'; options: CompareOptions };

export class UsageError extends Error {}

function number(name: string, text: string): number {
  const value = text === 'max' ? Infinity : Number(text);
  if (!(value > 0)) throw new UsageError(`--${name} takes a number above 0; got ${text}`);
  return value;
}

const text = { type: 'string' } as const;
const GIVEN = {
  sizes: text,
  minutes: text,
  seconds: text,
  rate: text,
  shape: text,
  spans: text,
  json: text,
  plots: text,
  page: text,
  parts: text,
  rounds: text,
  tolerance: text,
  runs: text,
  stored: text,
  login: text,
  ingest: { type: 'boolean' },
  filled: { type: 'boolean' },
  beside: text,
  url: text,
  key: text,
  org: text,
  'clickhouse-url': text,
  help: { type: 'boolean', short: 'h' },
} as const;

type Values = Partial<Record<keyof typeof GIVEN, string | boolean>>;

/** @throws UsageError for an unknown command; parseArgs' errors for unknown options */
export function readCommand(args: string[]): Command {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: GIVEN });
  if (values.help === true) return { command: 'help' };
  if (positionals[0] === 'table') return { command: 'table', options: tableOptions(positionals.slice(1), values) };
  if (positionals[0] === 'merge') {
    const [into, ...from] = positionals.slice(1);
    if (into === undefined || from.length === 0) throw new UsageError('merge takes at least two files of results');
    return { command: 'merge', options: { into, from } };
  }
  if (positionals[0] === 'compare')
    return { command: 'compare', options: compareOptions(positionals.slice(1), values) };
  return { command: 'run', options: runOptions(positionals, values) };
}

const given = (values: Values, name: keyof typeof GIVEN, fallback: string): string => {
  const value = values[name];
  return typeof value === 'string' ? value : fallback;
};
const orNone = (values: Values, name: keyof typeof GIVEN): string | undefined => {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
};

function runOptions(positionals: string[], values: Values): Options {
  const names = positionals.length === 0 ? ['all'] : positionals;
  const unknown = names.find((name) => name !== 'all' && !PARTS.some((part) => part === name));
  if (unknown !== undefined) throw new UsageError(`there is no benchmark ${unknown}`);
  const shape = given(values, 'shape', 'texts');
  if (shape !== 'texts' && shape !== 'plain') throw new UsageError(`--shape takes texts or plain; got ${shape}`);
  const url = orNone(values, 'url');
  if (values.filled === true && url === undefined)
    throw new UsageError('--filled takes --url: a service of its own starts with an empty store');
  return {
    parts: PARTS.filter((part) => names.includes(part) || (names.includes('all') && !NAMED_ONLY.includes(part))),
    sizes: sizesOf(given(values, 'sizes', names.includes('all') ? '1e6,1e7' : '1e7')),
    minutes: number('minutes', given(values, 'minutes', 'max')),
    seconds: number('seconds', given(values, 'seconds', '60')),
    rate: number('rate', given(values, 'rate', '10000')),
    shape,
    // A list of sizes is for portal.
    spans: number('spans', given(values, 'spans', '1000000').split(',').at(-1) ?? ''),
    json: orNone(values, 'json'),
    plots: orNone(values, 'plots'),
    running:
      url === undefined
        ? null
        : runningTarget(
            url,
            given(values, 'org', 'org_local'),
            given(values, 'key', ''),
            orNone(values, 'clickhouse-url') ?? null,
          ),
    filled: values.filled === true,
    beside: values.beside === undefined ? 0 : number('beside', given(values, 'beside', '')),
    portal: portalOptions(names, values),
    scale: scaleOptions(names, values),
  };
}

function scaleOptions(names: readonly string[], values: Values): ScaleOptions {
  const rate = number('rate', given(values, 'rate', '4000'));
  if (names.includes('scale') && rate === Infinity)
    throw new UsageError('--rate of scale takes a number of events a second that every set-up sustains; got max');
  return {
    seconds: number('seconds', given(values, 'seconds', '30')),
    rate,
    rounds: roundsOf(given(values, 'rounds', '1')),
  };
}

function roundsOf(value: string): number {
  const rounds = number('rounds', value);
  if (!Number.isInteger(rounds)) throw new UsageError(`--rounds takes a whole number; got ${rounds}`);
  return rounds;
}

function portalOptions(names: readonly string[], values: Values): PortalOptions {
  const named = names.includes('portal') ? orNone(values, 'spans') : undefined;
  const spans = (named?.split(',') ?? PORTAL_SPANS).map(Number);
  if (spans.some((size) => !Number.isInteger(size) || size < PORTAL_SPANS_MIN || size > PORTAL_SPANS_MAX))
    throw new UsageError(
      `--spans of portal takes whole numbers between ${PORTAL_SPANS_MIN} and ${PORTAL_SPANS_MAX}, separated by commas; got ${named ?? ''}`,
    );
  const runs = number('runs', given(values, 'runs', '30'));
  if (!Number.isInteger(runs)) throw new UsageError(`--runs takes a whole number; got ${runs}`);
  const stored = Number(given(values, 'stored', '0'));
  if (!Number.isInteger(stored) || stored < 0)
    throw new UsageError(`--stored takes a number of spans; got ${given(values, 'stored', '')}`);
  const login = orNone(values, 'login') ?? null;
  if (names.includes('portal') && login === null && orNone(values, 'url') !== undefined)
    throw new UsageError('portal with --url takes --login with a link that npm run login prints');
  return { spans, runs, stored, ingest: values.ingest === true, login };
}

function sizesOf(sizes: string): number[] {
  try {
    return parseSizes(sizes);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function tableOptions([results, ...more]: string[], values: Values): TableOptions {
  if (results === undefined || more.length > 0) throw new UsageError('table takes one file of results');
  return { results, page: orNone(values, 'page'), plots: orNone(values, 'plots') };
}

function compareOptions([a, b, ...more]: string[], values: Values): CompareOptions {
  if (a === undefined || b === undefined || more.length > 0) throw new UsageError('compare takes two commits');
  const names = given(values, 'parts', COMPARED.join(',')).split(',');
  const unknown = names.find((name) => !COMPARED.some((part) => part === name));
  if (unknown !== undefined) throw new UsageError(`--parts takes ${COMPARED.join(', ')}; got ${unknown}`);
  return {
    commits: [a, b],
    parts: COMPARED.filter((part) => names.includes(part)),
    rounds: roundsOf(given(values, 'rounds', '5')),
    tolerance: number('tolerance', given(values, 'tolerance', '0.1')),
    seconds: number('seconds', given(values, 'seconds', '20')),
    spans: number('spans', given(values, 'spans', '504000')),
    json: orNone(values, 'json'),
  };
}
