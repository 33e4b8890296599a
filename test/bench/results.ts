// The results of a run as JSON: what `--json` writes, and what `table`, `plots` and the test of the
// benchmark page read. The shape is validated whenever it is read: a bar that contradicts its own
// number is rejected.
import { readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { holds, type Section } from './report.ts';

export const RESULTS_SCHEMA = 'millrace-bench/1';

const UNITS = ['ms', 's', 'us', 'per_s', 'bytes', 'bytes_per_day', 'share', 'count'] as const;

const barShape = z.strictObject({ sense: z.enum(['at_most', 'at_least']), value: z.number() });

const measureShape = z
  .strictObject({
    name: z.string().min(1).describe('p50, p99, … of a row that has several numbers, `value` of one that has one'),
    value: z.number().nullable().describe('null: nothing was measured'),
    unit: z.enum(UNITS),
    samples: z.int().min(0).nullable().describe('How many measurements it comes from; null where that says nothing'),
    bar: barShape.nullable().describe('What was promised; null for nothing'),
    holds: z.boolean().nullable().describe('Whether it keeps the promise; null without one'),
  })
  .refine((measure) => measure.holds === holds(measure.value, measure.bar), 'holds does not agree with value and bar');

const rowShape = z.strictObject({
  what: z.string().min(1),
  value: z.string().describe('As a person reads it'),
  bar: z.string(),
  note: z.string(),
  measures: z.array(measureShape),
});

const sectionShape = z.strictObject({
  part: z.string().min(1).describe('The part of the benchmark, as `npm run bench -- <part>` names it'),
  title: z.string().min(1),
  spans: z.int().positive().nullable().describe('Spans in the store that was read; null where it does not matter'),
  run: z
    .strictObject({ at: z.iso.datetime(), commit: z.string(), dirty: z.boolean().nullable() })
    .optional()
    .describe('Of the run that it was taken over from; without it, the run of the whole'),
  load_before: z.number().min(0).describe('Load average of one minute before the part began'),
  seconds: z.number().min(0).describe('How long the part took'),
  rows: z.array(rowShape),
  data: z.unknown().describe("The part's own raw numbers; nothing reads them by program"),
});

const machineShape = z.strictObject({
  cpu: z.string(),
  cores: z.int().positive(),
  memory_bytes: z.int().positive(),
  platform: z.string(),
  kernel: z.string(),
  load_before: z.number().min(0).describe('Load average of one minute before the first part'),
});

const resultsShape = z.strictObject({
  schema: z.literal(RESULTS_SCHEMA),
  at: z.iso.datetime().describe('When the run began'),
  command: z.array(z.string()).describe('Arguments of the run'),
  commit: z.string().describe('Of the tree that was measured; empty where git knows none'),
  dirty: z.boolean().nullable().describe('Whether the tree had changes beside the commit; null where git knows none'),
  machine: machineShape,
  versions: z.strictObject({ node: z.string(), nats_server: z.string().nullable(), clickhouse: z.string().nullable() }),
  sections: z.array(sectionShape),
});

export type Results = z.infer<typeof resultsShape>;
export type ResultSection = Results['sections'][number];
export type ResultRow = ResultSection['rows'][number];
export type ResultMeasure = ResultRow['measures'][number];

/** A section of a report, as results contain it. */
export function resultSection(
  part: string,
  section: Section,
  run: { load_before: number; seconds: number },
): ResultSection {
  return {
    part,
    title: section.title,
    spans: section.spans ?? null,
    ...run,
    rows: section.rows.map(({ what, value, bar = '', note = '', measures = [] }) => ({
      what,
      value,
      bar,
      note,
      measures: measures.map((measure) => {
        const number = Number.isFinite(measure.value) ? measure.value : null;
        const promised = measure.bar ?? null;
        const { name, unit } = measure;
        return {
          name,
          value: number,
          unit,
          samples: measure.samples ?? null,
          bar: promised,
          holds: holds(number, promised),
        };
      }),
    })),
    data: section.data,
  };
}

/** @throws Error that names the file and the first invalid field */
export function parseResults(text: string, file: string): Results {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON`, { cause: error });
  }
  const parsed = resultsShape.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`${file} is no result of this benchmark: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
}

export const readResults = (file: string): Results => parseResults(readFileSync(file, 'utf8'), file);

/** Virtual machines of one kind differ by some pages of memory. */
const MEMORY_SHARE_MAX = 0.01;

/** Returns the version of a kernel without the name of its build: 6.18.44 of 6.18.44-fc-v669. */
const releaseOf = (kernel: string): string => kernel.split('-')[0] ?? kernel;

/** @throws Error when two runs were on machines of different kinds or with different versions */
function assertComparable(into: Results, from: Results): void {
  const [here, there] = [into.machine, from.machine];
  const isAlike = {
    cpu: here.cpu === there.cpu,
    cores: here.cores === there.cores,
    memory_bytes: Math.abs(here.memory_bytes - there.memory_bytes) <= here.memory_bytes * MEMORY_SHARE_MAX,
    platform: here.platform === there.platform,
    kernel: releaseOf(here.kernel) === releaseOf(there.kernel),
  };
  for (const what of ['cpu', 'cores', 'memory_bytes', 'platform', 'kernel'] as const)
    if (!isAlike[what]) throw new Error(`the runs are of two machines: ${what} is ${here[what]} and ${there[what]}`);
  const known = { ...into.versions, clickhouse: from.versions.clickhouse === null ? null : into.versions.clickhouse };
  if (!isDeepStrictEqual(known, from.versions))
    throw new Error('the runs are of other versions of Node, nats-server or ClickHouse');
}

/** Returns the sections of a run with the run's time and commit. */
const attributed = ({ at, commit, dirty, sections }: Results): ResultSection[] =>
  sections.map((section) => ({ ...section, run: section.run ?? { at, commit, dirty } }));

/**
 * Returns results with the parts of other runs in place of their own: one part takes minutes to
 * measure again, all of them hours. A part that several of the other runs measured, such as reads
 * at several sizes of the store, has the sections of all of them, the smallest store first.
 * @throws Error when a run was on another machine or with other versions: one table must be
 * comparable
 */
export function mergedResults(into: Results, ...from: readonly Results[]): Results {
  for (const run of from) assertComparable(into, run);
  const again = from.flatMap(attributed);
  const parts = [...new Set([...into.sections, ...again].map(({ part }) => part))];
  const sections = parts.flatMap((part) => {
    const measured = again.filter((section) => section.part === part);
    return measured.length === 0
      ? into.sections.filter((section) => section.part === part)
      : measured.sort((a, b) => (a.spans ?? 0) - (b.spans ?? 0));
  });
  return { ...into, sections };
}

/** Writes the results after validating them. */
export function writeResults(file: string, results: Results): void {
  const text = `${JSON.stringify(results, null, 2)}\n`;
  parseResults(text, file);
  writeFileSync(file, text);
}
