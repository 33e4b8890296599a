import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { growthSeries, writePlots } from '../../bench/plots.ts';
import { atLeast, atMost, p50p99, single, type Section } from '../../bench/report.ts';
import {
  mergedResults,
  parseResults,
  readResults,
  resultSection,
  RESULTS_SCHEMA,
  writeResults,
  type Results,
} from '../../bench/results.ts';
import { markedText, printTable, resultsText, withMarkedText } from '../../bench/table.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'millrace-results-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const RUN = { load_before: 0.4, seconds: 12 };

function reads(spans: number, times: number[]): Section {
  return {
    title: `Reads at ${spans} spans`,
    spans,
    rows: [
      {
        what: 'list, no filter',
        value: 'fast',
        bar: 'p50 ≤ 30 ms, p99 ≤ 100 ms',
        measures: p50p99(times, { p50: 30, p99: 100 }),
      },
    ],
    data: null,
  };
}

function results(...sections: [part: string, section: Section][]): Results {
  return {
    schema: RESULTS_SCHEMA,
    at: '2026-11-22T00:00:00.000Z',
    command: ['all'],
    commit: 'd760ad8f3a1b2c3d4e5f60718293a4b5c6d7e8f9',
    dirty: false,
    machine: {
      cpu: 'AMD EPYC',
      cores: 2,
      memory_bytes: 24 * 1024 ** 3,
      platform: 'linux',
      kernel: '6.18',
      load_before: 0.3,
    },
    versions: { node: '26.10.0', nats_server: '2.15.0', clickhouse: '26.3.1' },
    sections: sections.map(([part, section]) => resultSection(part, section, RUN)),
  };
}

describe('results', () => {
  it('results say of every number whether it keeps its promise, and are read back as written', () => {
    const file = path.join(folder, 'results.json');
    const ingest: Section = {
      title: 'Ingest',
      rows: [
        { what: 'landed', value: '9,826/s', measures: single(9826, 'per_s', atLeast(10_000)) },
        { what: 'memory', value: '1.9 GiB', measures: single(1.9 * 1024 ** 3, 'bytes', atMost(2 * 1024 ** 3)) },
        { what: 'nothing came', value: '–', measures: p50p99([], { p50: 250 }) },
      ],
      data: { samples: [1, 2] },
    };
    const written = results(['ingest', ingest], ['reads', reads(1_020_000, [10, 20, 200])]);
    writeResults(file, written);
    expect(readResults(file)).toEqual(written);
    const said = written.sections.flatMap(({ rows }) =>
      rows.flatMap(({ measures }) => measures.map(({ name, holds }) => [name, holds])),
    );
    expect(said).toEqual([
      ['value', false],
      ['value', true],
      ['p50', false],
      ['p99', null],
      ['p50', true],
      ['p99', false],
    ]);
    expect(written.sections[0]?.rows[2]?.measures[0]).toMatchObject({ value: null, samples: 0 });
  });

  it.each([
    ['no JSON', '{', /is not JSON/],
    ['another schema', JSON.stringify({ ...results(), schema: 'millrace-bench/0' }), /schema/],
    ['a field that is not there', JSON.stringify({ ...results(), machine: undefined }), /machine/],
  ])('results are rejected with the field for %s', (_, text, message) => {
    expect(() => parseResults(text, 'a.json')).toThrow(message);
  });

  it('results are rejected when a number claims to keep a promise that it does not keep', () => {
    const made = results(['reads', reads(36, [500])]);
    const [measure] = made.sections[0]?.rows[0]?.measures ?? [];
    if (measure !== undefined) measure.holds = true;
    expect(() => parseResults(JSON.stringify(made), 'a.json')).toThrow(
      'sections.0.rows.0.measures.0: holds does not agree',
    );
  });
});

describe('the parts of another run', () => {
  const old = results(['ingest', reads(1, [10])], ['reads', reads(1, [10])], ['reads', reads(2, [20])]);
  const again = {
    ...results(['reads', reads(3, [5])], ['single', reads(1, [1])]),
    at: '2026-11-23T00:00:00.000Z',
    commit: 'f'.repeat(40),
  };

  it('the parts of another run replace their own, and say which run they are of', () => {
    const merged = mergedResults(old, again);
    expect(merged.sections.map(({ part, spans, run }) => [part, spans, run?.commit])).toEqual([
      ['ingest', 1, undefined],
      ['reads', 3, again.commit],
      ['single', 1, again.commit],
    ]);
    expect(parseResults(JSON.stringify(merged), 'a.json')).toEqual(merged);
    const text = resultsText(merged);
    expect(text.match(/measured again on 2026-11-23, commit ffffffffff:/g)).toHaveLength(2);
    // Merged again, it still belongs to the run that measured it.
    expect(mergedResults(old, merged).sections[1]?.run).toEqual(merged.sections[1]?.run);
  });

  it('sizes of the store that were read by runs of their own stand together, the smallest first', () => {
    const at = (spans: number): Results => results(['reads', reads(spans, [10, 20, 200])]);
    const merged = mergedResults(old, at(50_000_000), at(10_000_000));
    expect(merged.sections.filter(({ part }) => part === 'reads').map(({ spans }) => spans)).toEqual([
      10_000_000, 50_000_000,
    ]);
  });

  it.each([
    ['another machine', { machine: { ...old.machine, cores: 4 } }, /cores is 2 and 4/],
    [
      'a machine with more memory',
      { machine: { ...old.machine, memory_bytes: 2 * old.machine.memory_bytes } },
      /memory_bytes is/,
    ],
    ['another kernel', { machine: { ...old.machine, kernel: '1.2.3-own' } }, /kernel is .* and 1\.2\.3-own/],
    ['another version', { versions: { ...old.versions, node: '20.0.0' } }, /other versions/],
  ])('the parts of another run are rejected when they are of %s', (_, changed, message) => {
    expect(() => mergedResults(old, { ...again, ...changed })).toThrow(message);
  });

  it('a machine of the same kind may have some pages of memory more and another build of its kernel', () => {
    const { kernel, memory_bytes } = old.machine;
    const alike = { ...old.machine, memory_bytes: memory_bytes + 8192, kernel: `${kernel}-another` };
    expect(mergedResults(old, { ...again, machine: alike }).machine).toEqual(old.machine);
  });
});

describe('the tables of the benchmark page', () => {
  const readme =
    'before\n\n<!-- bench:begin: written by `npm run bench -- table` -->\n\nformer figures\n\n<!-- bench:end -->\n\nafter\n';

  it('the tables of the benchmark page are written between their marks and nowhere else, the same however often', () => {
    const file = path.join(folder, 'results2.json');
    const target = path.join(folder, 'README.md');
    writeResults(file, results(['reads', reads(1_020_000, [10, 20, 200])]));
    writeFileSync(target, readme);
    const options = { results: file, page: target, plots: undefined };
    printTable(options);
    const once = readFileSync(target, 'utf8');
    printTable(options);
    expect(readFileSync(target, 'utf8')).toBe(once);
    expect(once.startsWith('before\n\n<!-- bench:begin')).toBe(true);
    expect(once.endsWith('<!-- bench:end -->\n\nafter\n')).toBe(true);
    expect(once).not.toContain('former');
    expect(markedText(once)).toBe(resultsText(readResults(file)));
  });

  it('the tables of the benchmark page show which promise is not kept, what was omitted and why', () => {
    const refused: Section = {
      title: 'Reads at 50,000,000 spans',
      spans: 50_000_000,
      rows: [{ what: 'all reads', value: 'not run', note: 'needs 40 GB' }],
      data: null,
    };
    const text = resultsText(results(['reads', reads(36, [10])], ['reads', reads(72, [500])], ['reads', refused]));
    expect(text).toContain('commit d760ad8f3a, on AMD EPYC, 2 cores, 24 GiB, linux 6.18; Node 26.10.0');
    expect(text).toMatch(/list, no filter .* yes +\|\n/);
    expect(text).toMatch(/list, no filter .* no +\|\n/);
    expect(text).toContain('not run: needs 40 GB');
  });

  it('the tables of the benchmark page are rejected without their marks', () => {
    expect(() => withMarkedText('no marks', 'text')).toThrow('no place for the table');
  });

  it('reads at several sizes have a table of how they grow', () => {
    const slow: Section = {
      ...reads(50_000_000, [90]),
      rows: [...reads(50_000_000, [90]).rows, { what: 'new', value: '' }],
    };
    const text = resultsText(
      results(['reads', reads(10_000_000, [30])], ['reads', slow], ['reads', reads(1_000_000, [10])]),
    );
    const table = text.slice(text.indexOf('Growth from 10 M spans to 50 M spans'));
    expect(table.replaceAll(/ +/g, ' ')).toContain(
      '| p50 | 1 M spans | 10 M spans | 50 M spans | Growth | At most 2 times |',
    );
    expect(table.replaceAll(/ +/g, ' ')).toContain('| list, no filter | 10 ms | 30 ms | 90 ms | 3.0 times | no |');
    expect(resultsText(results(['reads', reads(10_000_000, [30])]))).not.toContain('Growth');
  });

  const at = (name: string): string => path.resolve(import.meta.dirname, '../../..', name);
  it.each([
    ['ops/docs/benchmarks.md', 'test/bench/results/latest.json'],
    ['ops/docs/benchmarks_reads.md', 'test/bench/results/reads.json'],
  ])('%s shows the committed results', (page, committed) => {
    expect(markedText(readFileSync(at(page), 'utf8'))).toBe(resultsText(readResults(at(committed))));
  });
});

describe('charts of growth', () => {
  const grown = results(
    ['reads', reads(10_000_000, [30])],
    ['reads', reads(1_000_000, [10, 10])],
    ['ingest', reads(5, [1])],
  );

  it('charts of growth have a line for p50 and p99 of each row, by size', () => {
    expect(growthSeries(grown, /^list/)).toEqual([
      {
        name: 'list, no filter, p50',
        of: 'list, no filter',
        points: [
          [1_000_000, 10],
          [10_000_000, 30],
        ],
      },
      {
        name: 'list, no filter, p99',
        of: 'list, no filter',
        points: [
          [1_000_000, 10],
          [10_000_000, 30],
        ],
      },
    ]);
  });

  it('charts of growth are written for what was measured, and for nothing else', () => {
    const files = writePlots(path.join(folder, 'plots'), grown);
    expect(files.map((file) => path.basename(file))).toEqual(['growth_list.svg']);
    expect(readFileSync(files[0] ?? '', 'utf8')).toContain('list, no filter, p99');
  });
});
