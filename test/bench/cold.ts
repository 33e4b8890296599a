// Cold storage: every text of a filled store goes out to Parquet objects and comes back, by the job
// and the restore themselves, in the service's engine. What came back is compared with what went
// out, byte for byte, by a checksum over every column of the objects.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLogger } from '../../ops/platform/logger.ts';
import { openObjectStore } from '../../ops/platform/object_store/open.ts';
import { ColdStorage } from '../../pipeline/cold/cold_storage.ts';
import { createRestore } from '../../pipeline/cold/restore.ts';
import { createRetention } from '../../pipeline/retention/retention.ts';
import { DEFAULT_RETENTION } from '../../schemas/records/retention.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import { ColdTables } from '../../sql/stores/cold.ts';
import { RetentionStore } from '../../sql/stores/retention.ts';
import { mebibytes, type Section, thousands, single } from './report.ts';
import { type RunSql, sqlRunner } from './store.ts';

const DAY_MS = 86_400_000;
/** By then everything in the store is due. */
const AHEAD_DAYS = 31;
const RSS_LOOK_MS = 200;

const SUM = `SELECT concat(toString(count()), ' ', toString(groupBitXor(cityHash64(org_id, started_at, trace_id, span_id, event_key, model, outcome, cost_usd, prompt, response,
  dl, partition, log_seq, log_index, log_sub)))) FROM span_texts`;

export interface ColdBench {
  clickhouseUrl: string;
  progress: (line: string) => void;
}

export async function benchCold({ clickhouseUrl, progress }: ColdBench): Promise<Section> {
  const runSql = sqlRunner(clickhouseUrl);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-cold-'));
  const clickhouse = createClickHouse({ url: clickhouseUrl });
  const store = await openObjectStore({ url: `file://${folder}/objects` });
  try {
    const tables = new ColdTables(clickhouse);
    const cold = new ColdStorage({ store, tables, tempDir: path.join(folder, 'tmp'), now: () => Date.now() });
    const { signal } = new AbortController();
    const log = createLogger('bench', 'warn');
    const before = await runSql(SUM);
    const texts = Number(before.split(' ')[0]);
    const peak = watchMemory();

    progress(`cold: ${thousands(texts)} texts out`);
    const began = performance.now();
    const policies = () => Promise.resolve([]);
    const retire = createRetention({
      store: new RetentionStore(clickhouse),
      tables,
      cold,
      policies,
      tracesDeleted: () => Promise.resolve(),
    });
    const run = await retire({ now: Date.now() + AHEAD_DAYS * DAY_MS, signal, log });
    const outSeconds = (performance.now() - began) / 1000;
    const left = Number(await runSql('SELECT count() FROM span_texts'));
    const { objects, bytes, largest } = await sizes(runSql);

    progress('cold: and back');
    const orgs = (await runSql('SELECT DISTINCT org_id FROM cold_objects FORMAT TSV')).split('\n');
    const restore = createRestore({
      shards: [{ cold, tables }],
      retentionOf: () => DEFAULT_RETENTION,
      openJobs: () => new Set(),
      now: () => Date.now(),
    });
    const back = performance.now();
    for (const org_id of orgs) {
      const args = { since_day: null, until_day: null, trace_ids: null };
      await restore({ job_id: 'job_bench', org_id, args, progress: () => undefined, signal, log });
    }
    const backSeconds = (performance.now() - back) / 1000;
    const after = await runSql(SUM);
    const rss = peak();
    const equal = after === before && left === 0;
    return {
      title: `Cold storage: ${thousands(texts)} texts of ${orgs.length} orgs over 90 days, out and back`,
      rows: [
        {
          what: 'out: exported, verified, dropped',
          value: `${thousands(texts / outSeconds)} rows/s`,
          note: `${outSeconds.toFixed(0)} s; ${thousands(objects)} objects, ${mebibytes(bytes)}, the largest with ${thousands(largest)} rows; ${String(run['parts_dropped'])} parts dropped, ${String(run['partitions_masked'])} partitions masked`,
          measures: single(texts / outSeconds, 'per_s'),
        },
        {
          what: 'back: verified, split into words',
          value: `${thousands(texts / backSeconds)} rows/s`,
          note: `${backSeconds.toFixed(0)} s; the text mover makes postings of the words later`,
          measures: single(texts / backSeconds, 'per_s'),
        },
        {
          what: 'prompts and responses',
          value: equal ? 'equal to the byte' : 'NOT EQUAL',
          bar: 'equal to the byte',
          note: 'checksum over every column',
        },
        { what: 'memory of the process (RSS), at most', value: mebibytes(rss), measures: single(rss, 'bytes') },
      ],
      data: { texts, out_seconds: outSeconds, back_seconds: backSeconds, objects, bytes, equal, rss, run },
    };
  } finally {
    store.close();
    await clickhouse.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sizes(runSql: RunSql): Promise<{ objects: number; bytes: number; largest: number }> {
  const [objects = '0', bytes = '0', largest = '0'] = (
    await runSql("SELECT count(), sum(bytes), max(rows) FROM cold_objects FINAL WHERE state = 'dropped' FORMAT TSV")
  ).split('\t');
  return { objects: Number(objects), bytes: Number(bytes), largest: Number(largest) };
}

/** @returns a function that ends the watch and returns the maximum memory of this process */
function watchMemory(): () => number {
  let most = process.memoryUsage.rss();
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, RSS_LOOK_MS);
  return () => {
    clearInterval(timer);
    return most;
  };
}
