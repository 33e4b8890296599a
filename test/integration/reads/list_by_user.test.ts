// Lists of one user's traces read the projection p_user of traces, and return exactly what the table
// holds: pairs of rows, rows that retention masked and traces that an erasure deleted included.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { listTraces, type TraceList } from '../../../api/telemetry/traces/list.ts';
import { listQuery } from '../../../api/telemetry/traces/schema.ts';
import { readTemplate, renderTemplate } from '../../../sql/client/template.ts';
import { ErasureStore } from '../../../sql/stores/erasure.ts';
import { wordsDeps } from '../../support/words.ts';
import { DAY, on, openCold, policyOf, type TestCold } from '../retention/a_cold.ts';

/** Traces of the organization in one month; the last days of the month have no due traces. */
const TRACES = 12_000;
/** Every trace whose number is a multiple is one of the user's. */
const OWN_EVERY = 300;
const DAYS = 20;
const USER = 'ann';
const signal = new AbortController().signal;

let cold: TestCold;
beforeAll(async () => {
  cold = await openCold();
});
afterAll(() => cold.close());

/** Lands traces in one part, with their places in the order of their start. */
const land = (from: number, until: number, { sign = 1, version = 1, spans = 1 } = {}): Promise<string> =>
  cold.value(
    `INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, user_id, outcome, spans, sign, version)
     SELECT 'org_a', started, sipHash64(id), id, started, started + 1, if(number % ${OWN_EVERY} = 0, '${USER}', concat('user_', toString(number % 997))),
       if(number % ${2 * OWN_EVERY} = 0, 'error', 'success'), ${spans}, ${sign}, ${version}
     FROM (SELECT number, concat('trace-', toString(number)) AS id, fromUnixTimestamp64Milli(${on(DAY)} + intDiv(number * ${DAYS} * 86400000, ${TRACES}), 'UTC') AS started
           FROM numbers(${from}, ${until - from}))`,
  );

beforeEach(async () => {
  await cold.clean();
  cold.policies.length = 0;
  await cold.value('SYSTEM STOP MERGES traces');
  await land(0, TRACES / 2);
  await land(TRACES / 2, TRACES);
  await cold.value('SYSTEM START MERGES traces');
  await cold.value('OPTIMIZE TABLE traces FINAL');
});

const list = (query: Record<string, unknown> = {}): Promise<TraceList> =>
  listTraces(
    { ...wordsDeps(cold.store.client), now: () => on(DAY + DAYS) },
    'org_a',
    listQuery.parse({ user_id: USER, limit: '200', ...query }),
    signal,
  );
const ids = ({ data }: TraceList): string[] => data.map(({ trace_id }) => trace_id);
/** Returns the user's traces from number `first` on, in the order of the list. */
const own = (first = 0): string[] =>
  Array.from({ length: TRACES / OWN_EVERY }, (_, n) => n * OWN_EVERY)
    .filter((number) => number >= first)
    .map((number) => `trace-${number}`)
    .reverse();

/** Returns the plan of a list of the user's traces. */
async function planOf(filters: Record<string, unknown> = {}): Promise<string> {
  const { sql, params } = renderTemplate(readTemplate('traces/whole.sql'), {
    org_id: 'org_a',
    user_id: USER,
    scores: [],
    not_scores: [],
    attributes: [],
    rows: 70,
    whole_rows: 500,
    ...filters,
  });
  const rows = await cold.store.client.rows<{ explain: string }>({
    name: 'test',
    sql: `EXPLAIN ${sql}`,
    params,
    timeoutMs: 20_000,
  });
  return rows.map(({ explain }) => explain).join('\n');
}
const BY_USER = 'ReadFromMergeTree (p_user)';

it("a list of a user's traces reads the projection, with its total and all filters of traces themselves", async () => {
  const { data, meta } = await list();
  expect(await planOf()).toContain(BY_USER);
  expect(data.map(({ trace_id }) => trace_id)).toEqual(own());
  expect(meta.total).toBe(own().length);

  const filters = {
    outcome: ['error'],
    agent_id: [''],
    root_span_name: [''],
    sampled: false,
    not_tags: ['x'],
    not_session_id: ['s'],
  };
  const ranges = { since_ms: on(DAY + 1), min_duration_ms: 1, max_cost_usd: 1, max_tokens: 1 };
  expect(await planOf({ ...filters, ...ranges })).toContain(BY_USER);
  const errors = await list({ outcome: 'error', since: new Date(on(DAY + 10)).toISOString() });
  expect(ids(errors)).toEqual(own(TRACES / 2).filter((_, index) => index % 2 === 1));
});

it('a list that does not name a user does not read the projection, however few users there are', async () => {
  await cold.value(`ALTER TABLE traces UPDATE user_id = 'bob' WHERE user_id != '${USER}' SETTINGS mutations_sync = 2`);
  expect(await planOf()).toContain(BY_USER);
  for (const filters of [{}, { not_user_id: ['bob'] }, { until_ms: on(DAY + 1) }, { since_ms: on(DAY + 19) }])
    expect(await planOf({ user_id: undefined, ...filters }), JSON.stringify(filters)).not.toContain(BY_USER);
});

it('states of traces that landed after a merge take the place of those in the projection, before and after the next one', async () => {
  await cold.value('SYSTEM STOP MERGES traces');
  await land(0, TRACES / 2, { sign: -1 });
  await land(0, TRACES / 2, { version: 2, spans: 7 });
  const expected = own().map((id) => (Number(id.slice(6)) < TRACES / 2 ? 7 : 1));
  const before = await list();
  await cold.value('SYSTEM START MERGES traces');
  await cold.value('OPTIMIZE TABLE traces FINAL');
  const after = await list();
  for (const { data, meta } of [before, after]) {
    expect(data.map(({ span_count }) => span_count)).toEqual(expected);
    expect(meta.total).toBe(own().length);
  }
  expect(
    await cold.value(
      "SELECT sum(rows) FROM system.projection_parts WHERE database = currentDatabase() AND table = 'traces' AND active AND NOT is_broken",
    ),
  ).toBe(String(TRACES));
});

it('pages by cursor lead through all of the traces of a user', async () => {
  const pages: string[] = [];
  for (let cursor: string | undefined; ;) {
    const { data, meta } = await list({ limit: '7', cursor });
    pages.push(...data.map(({ trace_id }) => trace_id));
    expect(meta.total).toBe(own().length);
    if (meta.next_cursor === null) break;
    cursor = meta.next_cursor;
  }
  expect(pages).toEqual(own());
});

it('a part without the projection is read without it', async () => {
  await cold.value('ALTER TABLE traces CLEAR PROJECTION p_user SETTINGS mutations_sync = 2');
  expect(await planOf()).not.toContain(BY_USER);
  expect(ids(await list())).toEqual(own());
});

it('traces that retention has masked are in no list of their user, although no merge has removed them', async () => {
  cold.policies.push(
    policyOf('org_a', {
      telemetry_events: { full_prompt_response_days: 1, metadata_only_days: 2, delete_after_days: 3 },
    }),
  );
  // Of 20 days, those up to the eighth are due.
  await cold.retire(DAY + 10);
  const left = own((TRACES / DAYS) * 8);
  expect(
    await cold.value('SELECT count() FROM traces SETTINGS apply_deleted_mask = 0, optimize_use_projections = 0'),
  ).toBe(String(TRACES));
  expect(await planOf()).toContain(BY_USER);
  const { data, meta } = await list();
  expect(data.map(({ trace_id }) => trace_id)).toEqual(left);
  expect(meta.total).toBe(left.length);
});

it('erased traces are in no list of their user', async () => {
  const store = new ErasureStore(cold.store.client);
  const scope = { org_id: 'org_a', job_id: 'job_0000000000000001' };
  const [newest = '', ...others] = own();
  await store.collect(scope, { attribute: 'trace_id', values: [newest] });
  await store.erase(scope, null, signal);
  expect(await planOf()).toContain(BY_USER);
  expect(ids(await list())).toEqual(others);
});
