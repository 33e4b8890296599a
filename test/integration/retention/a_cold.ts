// Retention and cold storage for tests: the real implementations, with a store and a folder (or
// bucket) for each test file.
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { ObjectStore } from '../../../ops/platform/object_store/object_store.ts';
import { openObjectStore } from '../../../ops/platform/object_store/open.ts';
import { ColdStorage } from '../../../pipeline/cold/cold_storage.ts';
import { createRestore } from '../../../pipeline/cold/restore.ts';
import { MONTHLY } from '../../../pipeline/domain/budgets/period.ts';
import type { OrgPolicy } from '../../../pipeline/domain/traces/retention.ts';
import { startOfDay } from '../../../pipeline/domain/time/days.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { DocumentNumbers } from '../../../pipeline/landing/document_numbers.ts';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseTextStore } from '../../../pipeline/landing/text_store.ts';
import { createRetention, type RetentionDeps } from '../../../pipeline/retention/retention.ts';
import type { RestoreArgs } from '../../../schemas/records/job_record.ts';
import { changedRetention, DEFAULT_RETENTION, type RetentionChange } from '../../../schemas/records/retention.ts';
import { ColdTables } from '../../../sql/stores/cold.ts';
import { RetentionStore } from '../../../sql/stores/retention.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { removeDir, tempDir } from '../../support/temp.ts';

/**
 * The day on which the data of these tests begins, in days since 1970-01-01: 2026-03-02, a Monday.
 */
export const DAY = 20_514;
export const on = (day: number, ms = 0): number => startOfDay(day) + ms;

const TABLES = [
  ...[
    'spans',
    'span_texts',
    'span_texts_recent',
    'span_words',
    'traces',
    'trace_lookup',
    'usage_events',
    'agent_activity',
    'judge_scores',
    'user_scores',
    'audit_log',
  ],
  ...['anomalies', 'incidents', 'incident_traces', 'webhook_deliveries', 'cold_objects', 'cold_rows', 'cold_staging'],
];

export interface TestCold {
  store: TestStore;
  objects: ObjectStore;
  cold: ColdStorage;
  tables: ColdTables;
  folder: string;
  /** Policies of the organizations that have one. All others have the defaults. */
  policies: OrgPolicy[];
  /** Lands spans with their traces, and moves their texts to the search table. */
  land(spans: readonly Span[]): Promise<void>;
  /** Moves the texts that have landed to the search table, in an epoch of their own: an erasure ends epochs. */
  moveTexts(): Promise<void>;
  /** Runs retention as of the start of a day. */
  retire(day: number, over?: Partial<RetentionDeps>): Promise<Record<string, unknown>>;
  restore(org_id: string, args?: Partial<RestoreArgs>, now?: number): Promise<Record<string, unknown>>;
  /** Returns the first cell of a statement's result. */
  value(sql: string): Promise<string>;
  /** Returns the names of the objects in the folder. */
  files(): string[];
  /** Deletes all rows and objects before the next test. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

export const policyOf = (org_id: string, change: RetentionChange): OrgPolicy => ({
  org_id,
  budget: MONTHLY,
  policy: changedRetention(DEFAULT_RETENTION, change),
});

/** Returns a span with its own texts that began on a day. */
export function aText(day: number, over: Partial<Span> = {}): Span {
  const started_at = on(day, 3_600_000);
  const span = aSpan({
    started_at,
    ended_at: started_at + 500,
    received_at: started_at + 600,
    trace_id: `trc_${day}`,
    ...over,
  });
  return {
    ...span,
    prompt: over.prompt ?? `prompt of ${span.span_id} “ünïcode”\n\u0000`,
    response: over.response ?? `response of ${span.span_id}`,
  };
}

/** @param shard name of the shard whose cold storage this is; empty for the only one */
export async function openCold(url?: string, shard = ''): Promise<TestCold> {
  const store = await openTestStore();
  const folder = tempDir('cold');
  const objects = await openObjectStore({
    url: url ?? `file://${folder}/objects`,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  });
  const tables = new ColdTables(store.client);
  const tempFolder = path.join(folder, 'tmp');
  const cold = new ColdStorage({ store: objects, tables, shard, tempDir: tempFolder, now: () => Date.now() });
  const log = createLogger('test', 'silent');
  const policies: OrgPolicy[] = [];
  const signal = new AbortController().signal;
  const value = async (sql: string): Promise<string> => (await store.database.run(sql)).replace(/\n$/, '');
  return {
    store,
    objects,
    cold,
    tables,
    folder,
    policies,
    async land(spans) {
      await store.landSpans(spans);
      await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
      await moveTexts(store);
    },
    moveTexts: () => moveTexts(store),
    retire: (day, over = {}) =>
      createRetention({
        store: new RetentionStore(store.client),
        tables,
        cold,
        policies: () => Promise.resolve(policies),
        tracesDeleted: () => Promise.resolve(),
        ...over,
      })({
        now: on(day),
        signal,
        log,
      }),
    restore: (org_id, args = {}, now = on(DAY)) =>
      createRestore({
        shards: [{ cold, tables }],
        retentionOf: (org) => policies.find((one) => one.org_id === org)?.policy ?? DEFAULT_RETENTION,
        openJobs: () => new Set(),
        now: () => now,
      })({
        job_id: 'job_0123456789abcdef',
        org_id,
        args: { since_day: null, until_day: null, trace_ids: null, ...args },
        progress: () => undefined,
        signal,
        log,
      }),
    value,
    files: () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.startsWith('objects') && name.includes('day='))
        .map((name) => name.slice('objects/'.length))
        .sort(),
    async clean() {
      policies.length = 0;
      removeDir(path.join(folder, 'objects'));
      for (const table of TABLES) await store.database.run(`TRUNCATE TABLE ${table}`);
    },
    async close() {
      objects.close();
      await store.close();
      removeDir(folder);
    },
  };
}

async function moveTexts({ client, database }: TestStore): Promise<void> {
  const texts = new ClickHouseTextStore(client, new Fences(client, 'test'));
  const epoch = await texts.takeMoverFence('test');
  const numbers = new DocumentNumbers(epoch);
  const parts = (await texts.recentParts()).map((part) => ({ ...part, first: numbers.take(part.rows) }));
  if (parts.length > 0 && (await texts.move(parts, epoch, `move-${randomUUID()}`)) === null)
    throw new Error('the move is fenced off');
  await database.run('TRUNCATE TABLE span_texts_recent');
}

/** Returns the keys of a store that begin with a prefix, in order. */
export async function keysOf(objects: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of objects.list(prefix, new AbortController().signal)) keys.push(key);
  return keys.sort();
}

/**
 * Returns a query for a checksum of an organization's texts, over every column that an object
 * holds. The order of rows does not matter.
 */
export const textSum = (org_id: string): string =>
  `SELECT concat(toString(count()), ':', toString(groupBitXor(cityHash64(started_at, trace_id, span_id, event_key, model, outcome, cost_usd, prompt, response, dl, partition, log_seq, log_index, log_sub)))) FROM span_texts WHERE org_id = '${org_id}'`;
