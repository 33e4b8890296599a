// The report of a soak run: Markdown with verdicts and graphs, the graphs as SVG beside it, all
// samples as JSON.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { markdownTable } from '../bench/report.ts';
import { lineChart, type LineChart, type Series } from '../support/plot.ts';
import type { Sample } from './figures.ts';
import { partsOf, type Outcome, type Verdict } from './verdicts.ts';

export interface SoakRun {
  /** When, which code, which machine. */
  run_line: string;
  seconds: number;
  rate: number;
  /** Kills and restarts with their times. */
  events: readonly { at_s: number; what: string }[];
  outcome: Outcome;
  verdicts: readonly Verdict[];
  samples: readonly Sample[];
}

const MIB = 1024 ** 2;

/** One chart, and the name of its file. */
type Drawn = readonly [file: string, chart: LineChart];

/** Ways to draw the samples of a run as series over its minutes. */
function seriesOf(samples: readonly Sample[]) {
  const line = (name: string, pick: (sample: Sample) => number): Series => ({
    name,
    points: samples.map((sample) => [sample.at_s / 60, pick(sample)] as const),
  });
  const named = (pick: (sample: Sample) => Record<string, number>, scale = 1): Series[] =>
    [...new Set(samples.flatMap((sample) => Object.keys(pick(sample))))].map((name) =>
      line(name, (sample) => (pick(sample)[name] ?? NaN) / scale),
    );
  const byPart = (pick: (process: Sample['processes'][number]) => number): Series[] =>
    partsOf(samples).map((part) =>
      line(part, ({ processes }) => {
        const mine = processes.filter((process) => process.part === part);
        return mine.length === 0 ? NaN : mine.reduce((sum, process) => sum + pick(process), 0);
      }),
    );
  /** Only the largest few: a chart of forty lines shows nothing. */
  const largest = (series: readonly Series[], count = 8): Series[] => {
    const most = ({ points }: Series): number => points.reduce((top, [, value]) => (value > top ? value : top), 0);
    return [...series].sort((a, b) => most(b) - most(a)).slice(0, count);
  };
  const rate = (name: string, pick: (sample: Sample) => number): Series => ({
    name,
    points: samples.slice(1).map((sample, index) => {
      const before = samples[index] ?? sample;
      return [sample.at_s / 60, (pick(sample) - pick(before)) / (sample.at_s - before.at_s)] as const;
    }),
  });
  return { line, named, byPart, largest, rate };
}

const chart = (file: string, title: string, y_label: string, series: readonly Series[], log_y = false): Drawn => [
  file,
  { title, x_label: 'minutes', y_label, series, log_y },
];

function charts(samples: readonly Sample[]): Drawn[] {
  const { line, named, byPart, largest, rate } = seriesOf(samples);
  return [
    chart(
      'memory',
      'Memory of each process',
      'MiB',
      byPart(({ rss_bytes }) => rss_bytes / MIB),
    ),
    chart(
      'heap',
      'Heap in use',
      'MiB',
      named(({ heap_bytes }) => heap_bytes, MIB),
    ),
    chart(
      'descriptors',
      'Open descriptors',
      'descriptors',
      byPart(({ descriptors }) => descriptors),
    ),
    chart('rates', 'Events a second', 'events/s', [
      rate('acknowledged', ({ acknowledged }) => acknowledged),
      rate('landed', ({ landed }) => landed),
    ]),
    chart(
      'acknowledged',
      'Time to the acknowledgement',
      'ms',
      [line('p50', ({ ack_p50_ms }) => ack_p50_ms), line('p99', ({ ack_p99_ms }) => ack_p99_ms)],
      true,
    ),
    chart('lag', 'Lag of the pipeline', 'seconds', [line('lag', ({ lag_seconds }) => lag_seconds)]),
    chart('waiting', 'What waits', 'rows, messages', [
      line('texts to be searchable', ({ texts_waiting }) => texts_waiting),
      line('messages of the log', ({ lag_messages }) => lag_messages),
    ]),
    chart(
      'event_loop',
      'Event loop lag, p99',
      'ms',
      named(({ event_loop_p99_ms }) => event_loop_p99_ms),
      true,
    ),
    chart('parts', 'Active parts', 'parts', largest(named(({ parts }) => parts))),
    chart('disk', 'Disk by folder', 'MiB', [
      ...named(({ disk_bytes }) => disk_bytes, MIB),
      line('active parts', ({ part_bytes }) => part_bytes / MIB),
    ]),
    chart('stream_bytes', 'Bytes of the streams', 'MiB', largest(named(({ stream_bytes }) => stream_bytes, MIB))),
    chart(
      'stream_messages',
      'Messages of the streams',
      'messages',
      largest(named(({ stream_messages }) => stream_messages)),
    ),
    chart('ids', 'Ids in the dedupe windows', 'ids', [line('ids', ({ dedupe_ids }) => dedupe_ids)]),
  ];
}

const said = (ok: boolean | null): string => (ok === null ? 'too short' : ok ? 'ok' : 'BREACH');

/** The verdicts as a table, which is also printed at the end. */
export const verdictTable = (verdicts: readonly Verdict[]): string =>
  markdownTable(
    ['', 'What', 'Found', 'Bound'],
    verdicts.map(({ ok, what, found, bound }) => [said(ok), what, found, bound]),
  );

/** Writes the whole report into an existing folder, and returns the path of the Markdown. */
export function writeReport(folder: string, run: SoakRun): string {
  const drawn = charts(run.samples);
  for (const [file, chart] of drawn) writeFileSync(path.join(folder, `${file}.svg`), lineChart(chart));
  writeFileSync(path.join(folder, 'soak.json'), `${JSON.stringify(run)}\n`);
  const hours = run.seconds / 3600;
  const text = [
    '# Soak',
    '',
    `${hours.toFixed(2)} hours at ${run.rate.toLocaleString('en-US')} events/s. ${run.run_line}.`,
    '',
    verdictTable(run.verdicts),
    '',
    '## What was restarted',
    '',
    run.events.length === 0
      ? 'Nothing.'
      : markdownTable(
          ['Minute', 'What'],
          run.events.map(({ at_s, what }) => [(at_s / 60).toFixed(1), what]),
        ),
    '',
    '## Graphs',
    '',
    ...drawn.flatMap(([file, { title }]) => [`![${title}](${file}.svg)`, '']),
  ].join('\n');
  const where = path.join(folder, 'soak.md');
  writeFileSync(where, text);
  return where;
}
