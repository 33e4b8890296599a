// Error texts of failing traces, read from rows that the pipeline's own statements landed, moved and
// cleared.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ERROR_CHARS_MAX } from '../../../pipeline/domain/incidents/error_text.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { lookUpFailures } from '../../../pipeline/incidents/lookup.ts';
import { readScripts, splitStatements } from '../../../sql/client/migrate.ts';
import { readErrorTexts } from '../../../sql/stores/incidents.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, tracesOf, type TestStore } from '../../support/store.ts';

const AT = Date.parse('2026-02-03T04:05:06.789Z');
const COLUMNS = [
  ['spans', 'error_named'],
  ['span_texts', 'error_text'],
  ['span_texts_recent', 'error_text'],
] as const;

let store: TestStore;

beforeEach(async () => {
  store = await openTestStore();
});
afterEach(() => store.close());

const failed = (over: Partial<Span>): Span =>
  aSpan({ started_at: AT, ended_at: AT + 500, outcome: 'error', response: '', ...over });

/** Lands spans with their traces. */
async function land(spans: readonly Span[]): Promise<void> {
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 })));
}

/** Returns the errors of traces as an incident would show them. */
async function samples(spans: readonly Span[], told_at = AT + 1000): Promise<Record<string, string>> {
  const ids = [...new Set(spans.map(({ trace_id }) => trace_id))];
  const found = await lookUpFailures(
    store.client,
    ids.map((trace_id) => ({ org_id: 'org_a', trace_id, told_at })),
  );
  return Object.fromEntries(found.map(({ trace_id, sample }) => [trace_id, sample]));
}

/** Makes the rows those of a version before the columns of error texts. */
async function ageRows(): Promise<void> {
  const script = readScripts().migrations.find(({ name }) => name === '0048_find_error_texts.sql');
  for (const [table, column] of COLUMNS) await store.database.run(`ALTER TABLE ${table} DROP COLUMN ${column}`);
  for (const statement of splitStatements(script?.sql ?? '')) await store.database.run(statement);
}

interface Shape {
  attributes: Record<string, unknown>;
  response: string;
  text: string;
}
const SHAPES: Readonly<Record<string, Shape>> = {
  message_string: { attributes: { error_message: ' no seat ', error: 'x' }, response: 'r', text: 'no seat' },
  message_blank: { attributes: { error_message: '  ', error: 'refused' }, response: 'r', text: 'refused' },
  message_number: { attributes: { error_message: 5 }, response: 'r', text: '5' },
  error_string: { attributes: { error: '\u00a0 tief 語 ' }, response: 'r', text: '\u00a0 tief 語' },
  error_blank: { attributes: { error: ' ' }, response: ' r ', text: 'r' },
  error_with_message: { attributes: { error: { code: 1, message: ' late ' } }, response: 'r', text: 'late' },
  error_object: { attributes: { error: { code: 'E7', parts: [1] } }, response: 'r', text: '{"code":"E7","parts":[1]}' },
  error_number: { attributes: { error: 503 }, response: 'r', text: 'r' },
  error_list: { attributes: { error: ['a'] }, response: 'r', text: 'r' },
  error_null: { attributes: { error: null }, response: 'r', text: 'r' },
  response_only: { attributes: { error_code: 'E1' }, response: '  it broke\n', text: 'it broke\n' },
  response_blank: { attributes: {}, response: ' ', text: '' },
  no_texts: { attributes: {}, response: '', text: '' },
};
const SHAPED = Object.entries(SHAPES).map(([trace_id, { attributes, response }]) =>
  failed({ trace_id, attributes, response, ...(trace_id === 'no_texts' ? { prompt: '' } : {}) }),
);
const TEXTS = Object.fromEntries(Object.entries(SHAPES).map(([trace_id, { text }]) => [trace_id, text]));

describe('the error text of a failing trace', () => {
  it('is the error that attributes name, else the response, before, while and after the text moves', async () => {
    await land(SHAPED);
    expect(await samples(SHAPED)).toEqual(TEXTS);
    await store.moveTexts(false);
    expect(await samples(SHAPED)).toEqual(TEXTS);
    await store.database.run('TRUNCATE TABLE span_texts_recent');
    expect(await samples(SHAPED)).toEqual(TEXTS);
  });

  it('is read from rows that landed before the columns existed, also after the engine has merged and moved them', async () => {
    await land(SHAPED.slice(0, 6));
    await store.moveTexts();
    await land(SHAPED.slice(6));
    await ageRows();
    expect(await samples(SHAPED)).toEqual(TEXTS);
    for (const [table] of COLUMNS) await store.database.run(`OPTIMIZE TABLE ${table} FINAL`);
    expect(await samples(SHAPED)).toEqual(TEXTS);
    await store.moveTexts();
    expect(await samples(SHAPED)).toEqual(TEXTS);
  });

  it('is that of the first failing span with one, where an error in attributes precedes any response', async () => {
    const later = { started_at: AT + 1, ended_at: AT + 2 };
    const spans = [
      failed({ trace_id: 'first', response: 'one' }),
      failed({ trace_id: 'first', response: 'two', ...later }),
      failed({ trace_id: 'named', response: 'one' }),
      failed({ trace_id: 'named', attributes: { error: 'two' }, ...later }),
      failed({ trace_id: 'same_time', attributes: { error: 'one' } }),
      failed({ trace_id: 'same_time', attributes: { error: 'two' } }),
      // The outcome of the trace is error, so a span that timed out does not name the reason.
      failed({ trace_id: 'worst', outcome: 'timeout', attributes: { error: 'slow' } }),
      failed({ trace_id: 'worst', response: 'broken', ...later }),
      failed({ trace_id: 'successes', outcome: 'success', attributes: { error: 'handled' }, response: 'fine' }),
      failed({ trace_id: 'successes', ...later }),
    ];
    await land(spans);
    expect(await samples(spans)).toEqual({
      first: 'one',
      named: 'two',
      same_time: 'one',
      worst: 'broken',
      successes: '',
    });
  });

  it('is found for a trace that began long before its completion', async () => {
    await land(SHAPED);
    expect(await samples(SHAPED, AT + 3_600_000)).toEqual(TEXTS);
  });

  it('has as many characters as are read of an error', async () => {
    const spans = [
      failed({ trace_id: 'named', attributes: { error: '語😀'.repeat(ERROR_CHARS_MAX) } }),
      failed({ trace_id: 'answered', response: '語😀'.repeat(ERROR_CHARS_MAX) }),
    ];
    await land(spans);
    const keys = await store.client.rows<{ trace_key: string }>({
      name: 'test',
      sql: 'SELECT trace_key FROM traces',
      timeoutMs: 10_000,
    });
    const rows = await readErrorTexts(store.client, {
      orgs: ['org_a'],
      trace_keys: keys.map(({ trace_key }) => BigInt(trace_key)),
      from_ms: AT,
      to_ms: AT,
      chars: ERROR_CHARS_MAX,
    });
    expect(rows.map(({ text }) => text)).toEqual(Array(2).fill('語😀'.repeat(ERROR_CHARS_MAX / 2)));
  });
});

describe('the column of error texts', () => {
  const stored = async (table: string): Promise<string> =>
    (await store.database.run(`SELECT groupUniqArray(error_text) FROM ${table}`)).trim();
  const RESPONSES = [
    '  it broke\n',
    ' ',
    '\u00a0no seat\t ',
    `${' '.repeat(3)}${'a'.repeat(ERROR_CHARS_MAX - 1)}  b`,
    'é'.repeat(ERROR_CHARS_MAX + 1),
    `a${'😀'.repeat(ERROR_CHARS_MAX)}`,
    `${'語'.repeat(ERROR_CHARS_MAX)} `,
  ];

  it('has the same text whether the pipeline lands it or the engine derives it', async () => {
    const spans = RESPONSES.map((response) => failed({ response }));
    await store.landSpans(spans);
    const landed = 'SELECT span_id, error_text FROM span_texts_recent ORDER BY span_id';
    const texts = await store.database.run(landed);
    expect(await store.database.run(`SELECT countIf(error_text != '') FROM span_texts_recent`)).toBe('6\n');
    await ageRows();
    expect(await store.database.run(landed)).toBe(texts);
  });

  it('is empty for spans that succeeded', async () => {
    await store.landSpans([aSpan({ response: 'fine' })]);
    expect(await stored('span_texts_recent')).toBe("['']");
    await store.moveTexts();
    expect(await stored('span_texts')).toBe("['']");
  });

  it('is filled for texts that arrive without it, as from cold storage', async () => {
    await store.database.run(
      "INSERT INTO span_texts (org_id, outcome, response) VALUES ('org_a', 'error', ' it broke '), ('org_a', 'success', 'fine')",
    );
    expect(await stored('span_texts')).toMatch(/^\['(it broke)?','(it broke)?'\]$/);
  });
});
