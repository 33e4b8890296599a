// The tables of measured figures in a Markdown page, from the results of a run. They stand between
// two marks, so that a program can replace them and a test can check that they show the committed
// results.
import { readFileSync, writeFileSync } from 'node:fs';
import { growthTable } from './growth_table.ts';
import type { MergeOptions, TableOptions } from './options.ts';
import { writePlots } from './plots.ts';
import { markdownTable, thousands } from './report.ts';
import { mergedResults, readResults, type Results, type ResultSection, writeResults } from './results.ts';

const BEGIN = '<!-- bench:begin: written by `npm run bench -- table` -->';
const END = '<!-- bench:end -->';
/** The tables are formatted already. */
const [KEEP, FORMAT] = ['<!-- prettier-ignore-start -->', '<!-- prettier-ignore-end -->'];

/** Returns whether all numbers of a row keep their promises. */
function verdict(row: ResultSection['rows'][number]): string {
  const promised = row.measures.filter(({ holds }) => holds !== null);
  if (promised.length === 0) return '';
  return promised.every(({ holds }) => holds) ? 'yes' : 'no';
}

const escaped = (text: string): string => text.replaceAll('|', '\\|');

const treeOf = ({ commit, dirty }: Pick<Results, 'commit' | 'dirty'>): string =>
  commit === '' ? 'a tree without git' : `commit ${commit.slice(0, 10)}${dirty === true ? ' with changes' : ''}`;

function sectionTable({ part, title, rows, load_before, run }: ResultSection): string {
  const table = markdownTable(
    ['Measured', 'Result', 'Bar', 'Holds'],
    rows.map((row) => [
      escaped(row.what),
      escaped(row.value === 'not run' ? `not run: ${row.note}` : row.value),
      escaped(row.bar),
      verdict(row),
    ]),
  );
  return `${escaped(title)}; \`npm run bench -- ${part}\`, load average ${load_before.toFixed(1)} before${run === undefined ? '' : `, measured again on ${run.at.slice(0, 10)}, ${treeOf(run)}`}:\n\n${table}`;
}

/** Returns the figures of a run as Markdown: its environment, and a table for each section. */
export function resultsText(results: Results): string {
  const { at, commit, dirty, machine, versions, sections } = results;
  const runs = [
    `Node ${versions.node}`,
    `nats-server ${versions.nats_server ?? '?'}`,
    `ClickHouse ${versions.clickhouse ?? '?'}`,
  ].join(', ');
  const on = `${machine.cpu}, ${machine.cores} cores, ${thousands(machine.memory_bytes / 1024 ** 3)} GiB, ${machine.platform} ${machine.kernel}`;
  const growth = growthTable(results);
  return [
    `Measured on ${at.slice(0, 10)}, ${treeOf({ commit, dirty })}, on ${on}; ${runs}.`,
    ...sections.map(sectionTable),
    ...(growth === null ? [] : [growth]),
  ].join('\n\n');
}

/** Returns the text between the marks; null when there are none. */
export function markedText(page: string): string | null {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) return null;
  return page
    .slice(begin + BEGIN.length, end)
    .replace(KEEP, '')
    .replace(FORMAT, '')
    .trim();
}

/** Returns the page with another text between its marks. @throws Error when it has none */
export function withMarkedText(page: string, text: string): string {
  if (markedText(page) === null)
    throw new Error(`the file has no place for the table: a line ${BEGIN} and below it a line ${END}`);
  const [begin, end] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)];
  return [page.slice(0, begin), KEEP, text, FORMAT, page.slice(end)].join('\n\n');
}

/** `npm run bench -- merge`. */
export function mergeFiles({ into, from }: MergeOptions): void {
  writeResults(into, mergedResults(readResults(into), ...from.map(readResults)));
}

/** `npm run bench -- table`. */
export function printTable({ results: file, page, plots }: TableOptions): void {
  const results = readResults(file);
  const text = resultsText(results);
  if (page === undefined) console.log(text);
  else writeFileSync(page, withMarkedText(readFileSync(page, 'utf8'), text));
  if (plots !== undefined) for (const written of writePlots(plots, results)) console.log(written);
}
