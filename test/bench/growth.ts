// Reads at several sizes of one store, which grows from size to size: how the cost of a read grows
// with the stored data. A size that disk or time does not permit is not filled, and the table says
// so.
import { statfsSync } from 'node:fs';
import { BYTES_SQL, GrowingStore, LARGE_TRACES } from './fill.ts';
import { benchReads } from './reads.ts';
import { sqlRunner } from './store.ts';
import { single, thousands, type Section } from './report.ts';
import { FIRST_GUESS, whyNot } from './sizes.ts';
import type { Target } from './target.ts';

export interface GrowthOptions {
  target: Target;
  clickhouseUrl: string;
  /** Ascending. */
  sizes: readonly number[];
  /** Seconds until the run's time ends; Infinity without a bound. */
  secondsLeft: () => number;
  progress: (line: string) => void;
}

const DISK_ROW = 'disk a span, texts and indexes included';

/** Returns the free bytes of the store's disk; Infinity for a store elsewhere. */
function freeBytes(dataDir: string | null): number {
  if (dataDir === null) return Infinity;
  const { bavail, bsize } = statfsSync(dataDir);
  return bavail * bsize;
}

const refused = (size: number, why: string): Section => ({
  title: `Reads at ${thousands(size)} spans`,
  spans: size,
  rows: [{ what: `all reads at ${thousands(size)} spans`, value: 'not run', note: why }],
  data: null,
});

/** Measures the reads in a store that an earlier run has filled, and returns their section. */
export async function benchFilled(
  target: Target,
  clickhouseUrl: string,
  progress: (line: string) => void,
): Promise<Section> {
  const runSql = sqlRunner(clickhouseUrl);
  const spans = Number(await runSql('SELECT count() FROM spans'));
  const section = await benchReads(target, { spans, note: `90 days, ${LARGE_TRACES} traces of 1,000 spans` }, progress);
  const perSpan = Number(await runSql(BYTES_SQL)) / spans;
  section.rows.push({
    what: DISK_ROW,
    value: `${thousands(perSpan)} B`,
    note: 'filled by an earlier run',
    measures: single(perSpan, 'bytes'),
  });
  return section;
}

/** Returns a section for each size. */
export async function benchGrowth({
  target,
  clickhouseUrl,
  sizes,
  secondsLeft,
  progress,
}: GrowthOptions): Promise<Section[]> {
  const sections: Section[] = [];
  let [store, have, cost] = [null as GrowingStore | null, 0, FIRST_GUESS];
  for (const size of sizes) {
    const why = whyNot({ have, want: size, cost, free_bytes: freeBytes(target.dataDir), seconds_left: secondsLeft() });
    if (why !== null) {
      progress(`reads: ${thousands(size)} spans are not filled: ${why}`);
      sections.push(refused(size, why));
      continue;
    }
    progress(`reads: filling ${thousands(size)} spans`);
    store ??= await GrowingStore.open(clickhouseUrl, target.org, Math.max(...sizes), progress);
    const filled = await store.grow(size);
    const seconds = filled.seconds + filled.settle_s;
    progress(
      `  filled in ${thousands(filled.seconds)} s, merges done ${thousands(filled.settle_s)} s later; parts: ${JSON.stringify(filled.parts)}`,
    );
    const began = performance.now();
    const section = await benchReads(
      target,
      { spans: filled.spans, note: `90 days, ${LARGE_TRACES} traces of 1,000 spans` },
      progress,
    );
    cost = {
      bytes_per_span: filled.bytes / filled.spans,
      seconds_per_span: seconds / (filled.spans - have),
      read_seconds: (performance.now() - began) / 1000,
    };
    have = filled.spans;
    section.rows.push({
      what: DISK_ROW,
      value: `${thousands(cost.bytes_per_span)} B`,
      note: `parts: ${JSON.stringify(filled.parts)}; filled in ${thousands(seconds)} s, past the service`,
      measures: single(cost.bytes_per_span, 'bytes'),
    });
    sections.push(section);
  }
  await store?.close();
  return sections;
}
