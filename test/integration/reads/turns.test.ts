// One session and one end user: totals, turns with what was said, and days.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { showEndUser, showSession } from '../../../api/telemetry/sessions/one.ts';
import { TURN_CHARS_MAX, turnsQuery, userQuery } from '../../../api/telemetry/sessions/schema.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf, usd } from '../../support/store.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-03-10T12:00:00Z');
const signal = new AbortController().signal;

let store: TestStore;

const deps = () => ({ clickhouse: store.client, now: () => NOW });
const session = (session_id: string, query: Record<string, string> = {}, org_id = 'org_a') =>
  showSession(deps(), { org_id, session_id }, turnsQuery.parse(query), signal);
const user = (user_id: string, query: Record<string, string> = {}, org_id = 'org_a') =>
  showEndUser(deps(), { org_id, user_id }, userQuery.parse(query), signal);

const messages = JSON.stringify([
  { role: 'system', content: 'Be kind.' },
  { role: 'user', content: 'first question' },
  { role: 'assistant', content: 'first answer' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'second\nquestion' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ],
  },
  { role: 'user', content: [{ type: 'tool_result', content: 'a result' }] },
]);

/** Returns spans of a chat on two days, in one session, and of the same user in another session. */
function someSpans(): Span[] {
  const of = (trace_id: string, at: number, over: Partial<Span>): Span =>
    aSpan({
      org_id: 'org_a',
      trace_id,
      session_id: 'chat/1 ü',
      user_id: 'ann',
      started_at: at,
      ended_at: at + 1000,
      cost_pico_usd: 1_500_000_000n,
      ...over,
    });
  const day = NOW - 3 * DAY_MS;
  return [
    of('t-plain', day, { prompt: 'Where is my sofa?', response: 'On its way.' }),
    of('t-agent', day + 60_000, { kind: 'event', prompt: '', response: '', span_id: 'root' }),
    of('t-agent', day + 60_100, { parent_span_id: 'root', prompt: messages, response: '', outcome: 'error' }),
    of('t-agent', day + 61_000, { parent_span_id: 'root', prompt: '[]', response: 'the answer', span_id: 'late' }),
    of('t-long', NOW, { prompt: '😀'.repeat(TURN_CHARS_MAX + 1), response: '😀'.repeat(TURN_CHARS_MAX) }),
    of('t-silent', NOW + 1000, { prompt: '', response: '' }),
    of('t-else', NOW + 2000, { session_id: 'chat-2', prompt: '["not", "messages"]', response: 'x' }),
    of('t-foreign', NOW, { org_id: 'org_b', prompt: 'of another organization' }),
  ];
}

beforeAll(async () => {
  store = await openTestStore();
  const spans = someSpans();
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
  // A replaced state of a trace, which no merge has collapsed.
  const [first] = tracesOf(spans.slice(1, 2));
  if (first === undefined) throw new Error('the trace has a state');
  await store.landTraces([
    { state: first, version: 0, sign: 1 },
    { state: first, version: 0, sign: -1 },
  ]);
  await store.database.run(`INSERT INTO judge_scores
    (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, started_at, score, verdict, scored_at) VALUES
    ('org_a', 'j1', '', 't-plain', 1, 'kind', toDateTime64(${day()}, 3), 0, 'fail', toDateTime64(${day()}, 3)),
    ('org_a', 'j1', '', 't-plain', 2, 'kind', toDateTime64(${day()}, 3), 1, 'pass', toDateTime64(${day()}, 3)),
    ('org_a', 'j2', '', 't-plain', 1, 'broken', toDateTime64(${day()}, 3), NULL, 'error', toDateTime64(${day()}, 3)),
    ('org_b', 'j1', '', 't-agent', 1, 'kind', toDateTime64(${day()}, 3), 1, 'pass', toDateTime64(${day()}, 3))`);
  await store.database.run(`INSERT INTO user_scores
    (org_id, name, started_at, trace_id, score_id, data_type, number, text, created_at) VALUES
    ('org_a', 'helpful', toDateTime64(${day()}, 3), 't-plain', 's1', 'boolean', 0, '', toDateTime64(${day()}, 3)),
    ('org_a', 'helpful', toDateTime64(${day()}, 3), 't-plain', 's2', 'boolean', 1, '', toDateTime64(${day() + 1}, 3)),
    ('org_a', 'tone', toDateTime64(${day()}, 3), 't-plain', 's3', 'categorical', NULL, 'warm', toDateTime64(${day()}, 3))`);
});
afterAll(() => store.close());

const day = (): number => (NOW - 3 * DAY_MS) / 1000;

describe.each([
  ['while the texts wait to be moved', false],
  ['while a move is under way', true],
  ['once the texts are moved', true],
])('a session, %s', (_when, moved) => {
  beforeAll(async () => {
    if (moved) await store.moveTexts(_when !== 'while a move is under way');
  });

  it('returns the totals and the turns, oldest first, with what was said', async () => {
    const { data, meta } = await session('chat/1 ü');
    expect(data).toMatchObject({
      session_id: 'chat/1 ü',
      traces: 4,
      failed_traces: 1,
      failed_share: 0.25,
      spans: 6,
      cost_usd: usd(9_000_000_000n),
      first_seen: new Date(NOW - 3 * DAY_MS).toISOString(),
      last_seen: new Date(NOW + 2000).toISOString(),
    });
    expect(
      data.turns.map(({ trace_id, outcome, user_text, answer }) => [trace_id, outcome, user_text, answer]),
    ).toEqual([
      ['t-plain', 'success', whole('Where is my sofa?'), whole('On its way.')],
      ['t-agent', 'error', whole('second\nquestion'), whole('the answer')],
      ['t-long', 'success', { text: '😀'.repeat(TURN_CHARS_MAX), truncated: true }, whole('😀'.repeat(TURN_CHARS_MAX))],
      ['t-silent', 'success', null, null],
    ]);
    expect(meta).toEqual({ total: 4, page: 1, per_page: 50, has_more: false, next_cursor: null });
  });

  it('shows the newest score of each name and of the newest version of each judge', async () => {
    const { data } = await session('chat/1 ü');
    expect(data.turns[0]?.scores).toEqual([
      { name: 'helpful', source: 'user', value: true, verdict: null },
      { name: 'tone', source: 'user', value: 'warm', verdict: null },
      { name: 'kind', source: 'judge', value: 1, verdict: 'pass' },
      { name: 'broken', source: 'judge', value: null, verdict: 'error' },
    ]);
    expect(data.turns[1]?.scores).toEqual([]);
  });
});

const whole = (text: string) => ({ text, truncated: false });

describe('a page of turns', () => {
  it('returns the same turns by offset and by cursor', async () => {
    const wanted = ['t-plain', 't-agent', 't-long', 't-silent'];
    const byOffset: string[] = [];
    for (const offset of [0, 3])
      byOffset.push(...(await session('chat/1 ü', { limit: '3', offset: String(offset) })).data.turns.map(idOf));
    expect(byOffset).toEqual(wanted);
    const byCursor: string[] = [];
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const page: Awaited<ReturnType<typeof session>> = await session('chat/1 ü', {
        limit: '1',
        ...(cursor === undefined ? {} : { cursor }),
      });
      byCursor.push(...page.data.turns.map(idOf));
      cursor = page.meta.next_cursor;
    }
    expect(byCursor).toEqual(wanted);
  });

  it('rejects a cursor that it did not issue', async () => {
    await expect(session('chat/1 ü', { cursor: 'bm8' })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

const idOf = ({ trace_id }: { trace_id: string }): string => trace_id;

describe('an end user', () => {
  it('returns the turns of all sessions, and traces, sessions and cost by day', async () => {
    const { data } = await user('ann', { days: '4' });
    expect(data).toMatchObject({ user_id: 'ann', sessions: 2, traces: 5 });
    expect(data.turns.map(idOf)).toEqual(['t-plain', 't-agent', 't-long', 't-silent', 't-else']);
    expect(data.turns[4]?.user_text).toEqual(whole('["not", "messages"]'));
    const none = { traces: 0, failed_traces: 0, sessions: 0, cost_usd: 0, input_tokens: 0, output_tokens: 0 };
    expect(data.by_day).toEqual([
      {
        date: '2026-03-07',
        traces: 2,
        failed_traces: 1,
        sessions: 1,
        cost_usd: usd(6_000_000_000n),
        input_tokens: 40,
        output_tokens: 20,
      },
      { date: '2026-03-08', ...none },
      { date: '2026-03-09', ...none },
      {
        date: '2026-03-10',
        traces: 3,
        failed_traces: 0,
        sessions: 2,
        cost_usd: usd(4_500_000_000n),
        input_tokens: 30,
        output_tokens: 15,
      },
    ]);
  });

  it('adds up to the totals of the list of sessions', async () => {
    const { data } = await user('ann', { days: '90' });
    expect(data.by_day).toHaveLength(90);
    expect(data.by_day.reduce((sum, { traces }) => sum + traces, 0)).toBe(data.traces);
  });
});

it('a session and an end user of another organization do not exist', async () => {
  await expect(session('chat/1 ü', {}, 'org_c')).rejects.toMatchObject({ code: 'not_found' });
  await expect(user('ann', {}, 'org_c')).rejects.toMatchObject({ code: 'not_found' });
  const { data } = await session('chat/1 ü', {}, 'org_b');
  expect(data.turns.map(({ trace_id, scores }) => [trace_id, scores])).toEqual([['t-foreign', []]]);
});
