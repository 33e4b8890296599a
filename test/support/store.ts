// A migrated database with rows that the pipeline's own statements landed, for tests of reads.
import { randomUUID } from 'node:crypto';
import { picoToDecimal } from '../../pipeline/domain/pricing/money.ts';
import type { Span } from '../../pipeline/domain/traces/span.ts';
import { addSpan, emptyTrace, type TraceState } from '../../pipeline/domain/traces/trace_state.ts';
import { usageOf } from '../../pipeline/domain/budgets/usage.ts';
import { DocumentNumbers, SEGMENT_DOCS } from '../../pipeline/landing/document_numbers.ts';
import { Fences } from '../../pipeline/landing/fences.ts';
import { spanCells, textCells, signedTrace, traceCells, usageCells } from '../../pipeline/landing/row_encoders.ts';
import { ClickHouseTextStore } from '../../pipeline/landing/text_store.ts';
import { MOVER_PARTITION } from '../../sql/stores/landing_fences.ts';
import {
  landingBody,
  landingStatement,
  SPAN_TEXTS,
  SPANS,
  type TableSpec,
  TRACES,
  USAGE_EVENTS,
  type WireRow,
} from '../../sql/stores/landing_tables.ts';
import { type ClickHouse, createClickHouse } from '../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from './clickhouse.ts';

const DAYS = 30;
const TIMEOUT_MS = 20_000;
/** Epoch of the text mover. */
const EPOCH = 1;

export interface TestStore {
  client: ClickHouse;
  database: TestDatabase;
  /**
   * Lands spans in log order, one event each, with their usage. Their texts stay in
   * span_texts_recent. Resolves with the log position of the first.
   */
  landSpans(spans: readonly Span[]): Promise<number>;
  /** Lands rows of traces exactly as given, without the second row of each pair. */
  landTraces(rows: readonly { state: TraceState; version: number; sign: 1 | -1 }[]): Promise<void>;
  /**
   * Moves the texts of span_texts_recent to span_texts, with their postings. If `forget` is false, both
   * tables keep them, as during a move.
   */
  moveTexts(forget?: boolean): Promise<void>;
  /** Lets the documents that are moved from now on be of another segment. */
  beginSegment(): void;
  close(): Promise<void>;
}

export async function openTestStore(): Promise<TestStore> {
  const database = await createTestDatabase();
  const client = createClickHouse({ url: database.url });
  await database.run(
    `INSERT INTO landing_fences (partition, epoch, worker_id) VALUES (0, 1, 'test'), (${MOVER_PARTITION}, ${EPOCH}, 'test')`,
  );
  const texts = new ClickHouseTextStore(client, new Fences(client, 'test'));
  const numbers = new DocumentNumbers(EPOCH);
  let logSeq = 0;
  const land = async (spec: TableSpec, rows: readonly WireRow[]): Promise<void> => {
    if (rows.length === 0) return;
    await client.execute({
      name: 'land',
      sql: landingStatement(spec),
      body: landingBody(spec, rows),
      timeoutMs: TIMEOUT_MS,
    });
  };
  return {
    client,
    database,
    async landSpans(spans) {
      const first = logSeq + 1;
      const placed = spans.map((span) => ({ span, place: { partition: 0, log_seq: ++logSeq, log_index: 0 } }));
      await land(
        SPAN_TEXTS,
        placed.map(({ span, place }) => textCells(span, place, 0, DAYS)).filter((row) => row !== null),
      );
      await land(
        USAGE_EVENTS,
        placed.map(({ span, place }) =>
          usageCells(usageOf({ org_id: span.org_id, received_at: span.received_at, spans: [span] }), 0, place.log_seq),
        ),
      );
      await land(
        SPANS,
        placed.map(({ span, place }) => spanCells(span, place, 0, true)),
      );
      return first;
    },
    async landTraces(rows) {
      await land(
        TRACES,
        rows.map(({ state, version, sign }) => signedTrace(traceCells(state, 0, version), sign)),
      );
    },
    async moveTexts(forget = true) {
      const parts = (await texts.recentParts()).map((part) => ({ ...part, first: numbers.take(part.rows) }));
      await texts.move(parts, EPOCH, `move-${randomUUID()}`);
      if (forget) await database.run('TRUNCATE TABLE span_texts_recent');
    },
    beginSegment() {
      numbers.take(SEGMENT_DOCS);
    },
    async close() {
      await client.close();
      await database.drop();
    },
  };
}

/** Returns the traces that the spans add up to. */
export function tracesOf(spans: readonly Span[]): TraceState[] {
  return [...Map.groupBy(spans, (span) => `${span.org_id} ${span.trace_id}`).values()].map((own) => {
    const [first] = own;
    if (first === undefined) throw new Error('a group holds at least one span');
    const trace = emptyTrace(first);
    for (const span of own) addSpan(trace, span, true);
    return trace;
  });
}

/** Converts picodollars to the dollars of an API answer. */
export const usd = (pico: bigint): number => Number(picoToDecimal(pico));

/** Returns a generator of numbers in [0, 1) that depend only on the seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
