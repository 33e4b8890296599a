// Erasure: removes one user of a filled store from every table, by the job's statements, in the
// service's engine.
import { createClickHouse } from '../../sql/client/client.ts';
import { ErasureStore } from '../../sql/stores/erasure.ts';
import { mebibytes, type Section, thousands, single, atMost } from './report.ts';
import { sqlRunner } from './store.ts';

export interface EraseBench {
  clickhouseUrl: string;
  progress: (line: string) => void;
}

export async function benchErase({ clickhouseUrl, progress }: EraseBench): Promise<Section> {
  const runSql = sqlRunner(clickhouseUrl);
  const clickhouse = createClickHouse({ url: clickhouseUrl });
  try {
    const store = new ErasureStore(clickhouse);
    const user =
      'SELECT org_id, user_id FROM traces GROUP BY org_id, user_id ORDER BY uniq(trace_id) DESC, org_id, user_id LIMIT 1 FORMAT TSV';
    const [org_id = '', value = ''] = (await runSql(user)).split('\t');
    const [all = '', bytes = ''] = (
      await runSql(
        "SELECT sumIf(rows, table = 'spans'), sum(bytes_on_disk) FROM system.parts WHERE database = currentDatabase() AND active AND table IN ('spans', 'span_texts', 'span_words', 'traces') FORMAT TSV",
      )
    ).split('\t');
    const scope = { org_id, job_id: 'job_000000000000beef' };
    const { signal } = new AbortController();
    const timed = async (what: string, work: () => Promise<unknown>): Promise<number> => {
      progress(`erase: ${what}`);
      const began = performance.now();
      await work();
      return (performance.now() - began) / 1000;
    };
    const collect = await timed('looking for a user', () =>
      store.collect(scope, { attribute: 'user_id', values: [value] }),
    );
    const erase = await timed('taking out', () => store.erase(scope, null, signal));
    let left = 0;
    const prove = await timed('looking again', async () => {
      left = (await store.remaining(scope, EVERY_ROW)).size;
    });
    const found = await store.found(scope);
    const traces = await store.traceCount(scope);
    await store.forget(scope.job_id);
    return {
      title: `Erasure of one user from ${thousands(Number(all))} spans (${mebibytes(Number(bytes))} of spans, texts, postings and traces)`,
      rows: [
        {
          what: 'found',
          value: `${collect.toFixed(1)} s`,
          note: `${thousands(traces)} traces, ${thousands(found.get('spans') ?? 0)} spans, ${thousands(found.get('span_texts') ?? 0)} texts`,
          measures: single(collect, 's'),
        },
        {
          what: 'taken out',
          value: `${erase.toFixed(1)} s`,
          note: 'every part that holds one of these rows or postings is rewritten',
          measures: single(erase, 's'),
        },
        {
          what: 'looked for again',
          value: `${prove.toFixed(1)} s`,
          note: left === 0 ? 'nothing is left' : `${left} tables hold rows`,
          measures: [
            { name: 'seconds', value: prove, unit: 's' },
            { name: 'tables left', value: left, unit: 'count', bar: atMost(0) },
          ],
        },
      ],
      data: {
        spans: Number(all),
        bytes: Number(bytes),
        traces,
        found: Object.fromEntries(found),
        collect,
        erase,
        prove,
        left,
      },
    };
  } finally {
    await clickhouse.close();
  }
}

/** Marks of the most partitions that a log may have, above every row. */
const EVERY_ROW = Array.from({ length: 256 }, () => Number.MAX_SAFE_INTEGER);
