// Analysts read labels, flags and texts of spans that landed before and after the columns existed.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SPAN_FLAGS } from '../../../pipeline/domain/traces/span_flags.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const AT = Date.parse('2026-02-03T04:05:06.789Z');
let store: TestStore;
const rows = async (sql: string): Promise<unknown> => store.client.rows({ name: 'test', sql, timeoutMs: 10_000 });

beforeAll(async () => {
  store = await openTestStore();
  const labels = { environment: 'production', service: 'support', release: '1.4.0' };
  const prompt = { prompt_name: 'greet', prompt_version: 'v3' };
  await store.landSpans([
    aSpan({ span_id: 'moved', started_at: AT, ended_at: AT + 700, ...labels, ...prompt, first_token_ms: 80 }),
  ]);
  await store.moveTexts();
  await store.landSpans([
    aSpan({ span_id: 'recent', started_at: AT + 1, ended_at: AT + 2, attributes: { price_missing: true } }),
    aSpan({ span_id: 'silent', started_at: AT + 2, ended_at: AT + 3, prompt: '', response: '' }),
  ]);
  await store.database.run(
    `INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, kind, outcome, attributes, log_seq)
     VALUES ('org_a', '2026-01-01 00:00:00', '2026-01-01 00:00:01', 'trc_1', 'old', 'llm', 'success', '{}', 900)`,
  );
});
afterAll(() => store.close());

it('reads labels and the names of flags, and none of a span from before the columns', async () => {
  expect(
    await rows(
      'SELECT span_id, provider, environment, prompt_version, first_token_ms, flags FROM analyst_spans ORDER BY started_at',
    ),
  ).toEqual([
    { span_id: 'old', provider: '', environment: '', prompt_version: '', first_token_ms: 0, flags: [] },
    {
      span_id: 'moved',
      provider: 'openai',
      environment: 'production',
      prompt_version: 'v3',
      first_token_ms: 80,
      flags: ['recorded', 'has_texts'],
    },
    {
      span_id: 'recent',
      provider: 'openai',
      environment: '',
      prompt_version: '',
      first_token_ms: 0,
      flags: ['recorded', 'has_texts', 'price_missing'],
    },
    {
      span_id: 'silent',
      provider: 'openai',
      environment: '',
      prompt_version: '',
      first_token_ms: 0,
      flags: ['recorded'],
    },
  ]);
});

it('names the flags in the order of their bits', async () => {
  await store.database.run(
    `INSERT INTO spans (org_id, started_at, ended_at, span_id, attributes, flags) VALUES ('org_flags', '2026-01-01 00:00:00', '2026-01-01 00:00:01', 'all', '{}', 65535)`,
  );
  expect(await rows("SELECT flags FROM analyst_spans WHERE org_id = 'org_flags'")).toEqual([
    { flags: Object.keys(SPAN_FLAGS) },
  ]);
});

it('reads prompt and response beside the numbers of their span, whichever table the texts are in', async () => {
  expect(
    await rows(
      `SELECT span_id, model, environment, toInt32(duration_ms) AS duration_ms, prompt, response FROM analyst_calls
       WHERE org_id = 'org_a' AND started_at >= '2026-02-01 00:00:00' ORDER BY started_at`,
    ),
  ).toEqual([
    {
      span_id: 'moved',
      model: 'gpt-4o',
      environment: 'production',
      duration_ms: 700,
      prompt: 'hello',
      response: 'world',
    },
    { span_id: 'recent', model: 'gpt-4o', environment: '', duration_ms: 1, prompt: 'hello', response: 'world' },
  ]);
});

it('reads only spans of the time that a query on calls names', async () => {
  const plan = (await rows(
    `EXPLAIN indexes = 1 SELECT prompt FROM analyst_calls WHERE org_id = 'org_a' AND started_at >= '2026-02-01 00:00:00'`,
  )) as { explain: string }[];
  const text = plan.map(({ explain }) => explain.trim()).join('\n');
  const spans = text.slice(text.indexOf('.spans)'));
  expect(spans).toMatch(/Condition: .*started_at in \[/);
});
