// The text mover's own store, in steps, for tests of moves, older texts and the sweep of postings. The
// words of a text are those of its prompt.
import { createLogger } from '../../../ops/platform/logger.ts';
import { DocumentNumbers } from '../../../pipeline/landing/document_numbers.ts';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseOlderTextStore } from '../../../pipeline/landing/older_text_store.ts';
import { OlderTexts } from '../../../pipeline/landing/older_texts.ts';
import { PlaceSweep } from '../../../pipeline/landing/place_sweep.ts';
import type { NumberedRecentPart, Progress } from '../../../pipeline/landing/text_mover.ts';
import { ClickHouseTextStore } from '../../../pipeline/landing/text_store.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';

export interface ATextRow {
  org_id?: string;
  span_id: string;
  prompt: string;
  /** Day on which the text is dropped; its week is the partition. */
  drop_on?: string;
  log_seq: number;
}

export interface Leader {
  readonly epoch: number;
  readonly texts: ClickHouseTextStore;
  readonly older: ClickHouseOlderTextStore;
  /** Parts of span_texts_recent with the numbers that their texts are to get. */
  numbered(): Promise<NumberedRecentPart[]>;
  /** A step of the work beside moves. */
  step(): Promise<Progress>;
  /** Works until no older text, and no place without its document, is left. */
  finish(): Promise<void>;
}

export interface TestMover {
  database: TestDatabase;
  client: ClickHouse;
  /** Inserts texts as one part for each week. */
  insert(table: 'span_texts' | 'span_texts_recent', rows: readonly ATextRow[]): Promise<void>;
  /** Starts a leader with a new epoch. */
  lead(): Promise<Leader>;
  /** Postings as [week, span, word as a hash, times], of documents that exist. */
  postings(): Promise<string[]>;
  /** Postings that the texts with words should have. */
  expected(): Promise<string[]>;
  /** Number of places that no document has. */
  orphans(): Promise<number>;
  /** Resolves when no mutation of a mover is left. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 20_000;
const logger = createLogger('test', 'silent');

export async function openMover(): Promise<TestMover> {
  const database = await createTestDatabase();
  const client = createClickHouse({ url: database.url });
  const lines = async (sql: string): Promise<string[]> => {
    const rows = await client.rows<{ line: string }>({ name: 'test', sql, timeoutMs: TIMEOUT_MS });
    return rows.map(({ line }) => line);
  };
  return {
    database,
    client,
    async insert(table, rows) {
      await client.execute({
        name: 'land',
        sql: `INSERT INTO ${table} (org_id, started_at, span_id, prompt, words, dl, drop_on, log_seq)
          SELECT org_id, '2026-03-01 12:00:00', span_id, prompt, concat(prompt, ''), if(prompt = '', 0, length(splitByChar(' ', prompt))), drop_on, log_seq
          FROM input('org_id String, span_id String, prompt String, drop_on Date, log_seq UInt64') FORMAT JSONEachRow`,
        body: rows.map((row) => JSON.stringify({ org_id: 'org_a', drop_on: '2026-06-01', ...row })).join('\n'),
        timeoutMs: TIMEOUT_MS,
      });
    },
    lead: () => startLeader(client),
    postings: () =>
      lines(`SELECT concat(toString(week), ' ', t.span_id, ' ', toString(word), ' ', toString(times)) AS line
        FROM (SELECT week, word, segment * 65536 + place AS doc, times FROM span_words ARRAY JOIN places AS place, counts AS times) AS w
        INNER JOIN (SELECT span_id, doc FROM span_texts WHERE doc != 0) AS t ON t.doc = w.doc ORDER BY line`),
    expected: () =>
      lines(`SELECT concat(toString(toMonday(drop_on)), ' ', span_id, ' ', toString(cityHash64(word)), ' ', toString(least(count(), 65535))) AS line
        FROM span_texts ARRAY JOIN splitByChar(' ', prompt) AS word WHERE dl > 0 GROUP BY drop_on, span_id, word ORDER BY line`),
    async orphans() {
      const documents = '(SELECT groupBitmapState(doc) FROM span_texts)';
      const missing = `arrayCount(place -> NOT bitmapContains(${documents}, segment * 65536 + place), places)`;
      return Number((await lines(`SELECT toString(sum(${missing})) AS line FROM span_words`))[0]);
    },
    async settled() {
      const store = new ClickHouseOlderTextStore(client, new Fences(client, 'w'), 'w');
      await eventually(() => store.settled());
    },
    async close() {
      await client.close();
      await database.drop();
    },
  };
}

/** Starts a leader with a new epoch. */
export async function startLeader(client: ClickHouse): Promise<Leader> {
  const fences = new Fences(client, 'worker_a');
  const texts = new ClickHouseTextStore(client, fences);
  const older = new ClickHouseOlderTextStore(client, fences, 'worker_a');
  // Every look is due.
  let now = 0;
  const works = [
    new PlaceSweep(older, logger),
    new OlderTexts({
      store: older,
      workerId: 'worker_a',
      logger,
      sync: () => Promise.resolve(),
      now: () => (now += 60_000),
    }),
  ];
  let epoch = 0;
  let numbers = new DocumentNumbers(0);
  const begin = async (): Promise<void> => {
    epoch = await texts.takeMoverFence('worker_a');
    numbers = new DocumentNumbers(epoch);
    for (const work of works) work.begin(epoch);
  };
  await begin();
  const step = async (): Promise<Progress> => {
    for (const work of works) {
      const progress = await work.step();
      if (progress === 'idle') continue;
      if (progress === 'ended') await begin();
      return progress;
    }
    return 'idle';
  };
  return {
    get epoch() {
      return epoch;
    },
    texts,
    older,
    numbered: async () => (await texts.recentParts()).map((part) => ({ ...part, first: numbers.take(part.rows) })),
    step,
    finish: () =>
      eventually(async () => {
        while ((await step()) !== 'idle');
        const isDone =
          (await older.settled()) && (await older.olderParts()).length === 0 && (await older.sweptEpoch()) === epoch;
        // The step after a mutation sees its end.
        return isDone && (await step()) === 'idle';
      }),
  };
}
