// The texts of one trace's spans: whole texts as streams, where missing texts are, hostile ids, and
// the pages of a conversation.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { call, KEY, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

type Fields = Record<string, unknown>;

const AT = Date.parse('2026-02-03T04:05:06.789Z');
const TEXT_BYTES = 20 * 1024 * 1024;
const HOSTILE = ['a/b', "x' OR 1=1 --", 'ü\n"<script>', '%2e%2e', '{span_id:String}', ' '];

let nats: TestNats;
let store: TestStore;
let api: TestApi;

const of = (over: Partial<Span>): Span =>
  aSpan({ org_id: ORG, trace_id: 'texts', started_at: AT, ended_at: AT, ...over });
const bytesOf = (text: string): Buffer => Buffer.from(text, 'utf8');
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A text whose characters take one to four bytes. */
const LONG = 'aé東😀\n"\\'.repeat(TEXT_BYTES / 13);

beforeAll(async () => {
  [nats, store] = await Promise.all([startTestNats(), openTestStore()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  await store.landSpans([
    of({ span_id: 'short', prompt: 'Hi', response: '' }),
    of({ span_id: 'silent', kind: 'event', prompt: '', response: '' }),
    ...HOSTILE.map((span_id) => of({ trace_id: 'hostile', span_id, prompt: `prompt of ${span_id}` })),
  ]);
}, 120_000);
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

async function spanOf(trace: string, span: string): Promise<Fields> {
  const answer = await call(api, 'GET', `/v1/traces/${trace}/spans/${encodeURIComponent(span)}`);
  expect([span, answer.status]).toEqual([span, 200]);
  return answer.json?.['data'] as Fields;
}

describe('whole texts', () => {
  it('returns a text of 20 MB byte by byte, and the span only with its beginning', async () => {
    await store.database.run(
      `INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, kind, outcome, sampled, flags, log_seq) VALUES ('${ORG}', '2026-02-03 04:05:06', '2026-02-03 04:05:07', 'long', 'long', 'llm', 'success', true, 3, 900001)`,
    );
    await store.client.execute({
      name: 'test',
      sql: 'INSERT INTO span_texts_recent (org_id, started_at, trace_id, span_id, prompt, log_seq) FORMAT JSONEachRow',
      body: JSON.stringify({
        org_id: ORG,
        started_at: '2026-02-03 04:05:06.000',
        trace_id: 'long',
        span_id: 'long',
        prompt: LONG,
        log_seq: 900_001,
      }),
      timeoutMs: 60_000,
    });
    const response = await fetch(`${api.url}/v1/traces/long/spans/long/texts/prompt`, {
      headers: { Authorization: `Bearer ${KEY}`, 'X-Org-Id': ORG },
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect([response.status, bytes.length]).toEqual([200, bytesOf(LONG).length]);
    expect(hashOf(bytes)).toBe(hashOf(bytesOf(LONG)));
    const span = await spanOf('long', 'long');
    expect(span).toMatchObject({
      text_state: 'here',
      chars: { prompt: Array.from(LONG).length, response: 0 },
      truncated: { prompt: true, response: false },
    });
    expect(Array.from(String(span['prompt'])).length).toBe(262_144);
  });

  it.each(['response', 'prompt'])('returns 404 if the span has no %s', async (text) => {
    const span = text === 'response' ? 'short' : 'silent';
    const answer = await call(api, 'GET', `/v1/traces/texts/spans/${span}/texts/${text}`);
    expect([answer.status, answer.json?.['code']]).toEqual([404, 'text_not_found']);
  });

  it('names the texts that exist', async () => {
    const answer = await call(api, 'GET', '/v1/traces/texts/spans/short/texts/other');
    expect(answer.status).toBe(422);
    expect(answer.json?.['detail']).toContain('"prompt"|"response"');
  });
});

it.each(HOSTILE)('reads a span with the id %j, and names the file of its text safely', async (id) => {
  expect(await spanOf('hostile', id)).toMatchObject({ span_id: id, prompt: `prompt of ${id}` });
  const answer = await call(api, 'GET', `/v1/traces/hostile/spans/${encodeURIComponent(id)}/texts/prompt`);
  expect(answer.text).toBe(`prompt of ${id}`);
  expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="[A-Za-z0-9_.-]+"$/);
});

describe('text_state', () => {
  it('says where the texts of a span are', async () => {
    await store.landSpans([
      of({ trace_id: 'gone', span_id: 'dropped', started_at: AT - 86_400_000 }),
      of({ trace_id: 'gone', span_id: 'cold', started_at: AT }),
    ]);
    await store.database.run(
      "ALTER TABLE span_texts_recent DELETE WHERE trace_id = 'gone' SETTINGS mutations_sync = 1",
    );
    await store.database.run(
      `INSERT INTO cold_objects (org_id, day, state, object_key, dropped_as_of, version) VALUES ('${ORG}', '2026-02-03', 'dropped', 'some/object', '2026-03-06', 1)`,
    );
    await store.database.run(
      `INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, kind, outcome, sampled, flags, log_seq) VALUES ('${ORG}', '2026-02-03 04:05:06', '2026-02-03 04:05:07', 'gone', 'summary', 'llm', 'success', false, 5, 900002)`,
    );
    const state = async (trace: string, id: string) => {
      const { text_state, texts_left_on } = await spanOf(trace, id);
      return [text_state, texts_left_on];
    };
    expect(await state('texts', 'short')).toEqual(['here', null]);
    expect(await state('texts', 'silent')).toEqual(['none', null]);
    expect(await state('gone', 'dropped')).toEqual(['dropped', null]);
    expect(await state('gone', 'cold')).toEqual(['cold', '2026-03-06']);
    expect(await state('gone', 'summary')).toEqual(['sampled_out', null]);
  });
});

describe('matches', () => {
  interface Found {
    data: { span_id: string; part: string; snippet: string; marks: [number, number][] }[];
    meta: { truncated: boolean };
  }
  const matches = async (trace: string, q: string): Promise<Found> => {
    const answer = await call(api, 'GET', `/v1/traces/${trace}/matches?q=${encodeURIComponent(q)}`);
    expect([q, answer.status]).toEqual([q, 200]);
    return answer.json as unknown as Found;
  };
  const idsOf = ({ data }: Found): string[] => data.map(({ span_id }) => span_id);
  const marksOf = ({ data }: Found): string[][] =>
    data.map(({ snippet, marks }) => marks.map(([start, end]) => snippet.slice(start, end)));

  it('finds a phrase at the end of a text that is too long to be read beside others', async () => {
    const filling = 'car red and '.repeat(1_500_000);
    await store.landSpans([
      of({ trace_id: 'huge', span_id: 'apart', started_at: AT, prompt: filling, response: '' }),
      of({ trace_id: 'huge', span_id: 'both', started_at: AT + 1, prompt: `${filling} a red`, response: 'car' }),
      of({ trace_id: 'huge', span_id: 'end', started_at: AT + 2, prompt: '', response: `${filling} a red car` }),
    ]);
    for (const moved of [false, true]) {
      if (moved) await store.moveTexts();
      const found = await matches('huge', '"red car"');
      expect(idsOf(found)).toEqual(['both', 'end']);
      expect(marksOf(found)).toEqual([[], ['red car']]);
      expect(idsOf(await matches('huge', 'red car'))).toEqual(['apart', 'both', 'both', 'end']);
    }
  });

  it('finds each text once while both tables have it, and none that was deleted', async () => {
    await store.landSpans([
      of({ trace_id: 'twice', span_id: 'first', started_at: AT, prompt: 'the green door', response: '' }),
      of({ trace_id: 'twice', span_id: 'second', started_at: AT + 1, prompt: 'door, green', response: '' }),
      of({ org_id: 'org_other', trace_id: 'twice', span_id: 'foreign', prompt: 'the green door', response: '' }),
    ]);
    await store.moveTexts(false);
    expect(idsOf(await matches('twice', 'green door'))).toEqual(['first', 'second']);
    expect(idsOf(await matches('twice', '"green door"'))).toEqual(['first']);
    await store.database.run('TRUNCATE TABLE span_texts_recent');
    await store.landSpans([of({ trace_id: 'twice', span_id: 'third', started_at: AT + 2, prompt: 'green door' })]);
    expect(idsOf(await matches('twice', '"green door"'))).toEqual(['first', 'third']);
    await store.database.run("ALTER TABLE span_texts DELETE WHERE span_id = 'first' SETTINGS mutations_sync = 1");
    expect(idsOf(await matches('twice', 'green door'))).toEqual(['second', 'third']);
    expect(idsOf(await matches('twice', '"green door"'))).toEqual(['third']);
  });

  it('finds phrases in order behind more texts than one statement reads, up to the maximum', async () => {
    const texts = Array.from({ length: 1300 }, (_, n) =>
      of({
        trace_id: 'many',
        span_id: `text-${String(n).padStart(4, '0')}`,
        started_at: AT + n,
        prompt: n === 620 || n >= 720 ? 'grey wolf' : 'wolf grey',
        response: '',
      }),
    );
    await store.landSpans(texts.slice(0, 700));
    await store.moveTexts();
    await store.landSpans(texts.slice(700));
    const found = await matches('many', '"grey wolf"');
    const expected = texts.filter((_, n) => n === 620 || n >= 720).map(({ span_id }) => span_id);
    expect(idsOf(found)).toEqual(expected.slice(0, 500));
    expect(found.meta).toMatchObject({ truncated: true });
    expect((await matches('many', '"grey wolf grey"')).meta).toMatchObject({ truncated: false });
  });
});

describe('conversation', () => {
  it('returns every call once over its pages, each compared with a call before it', async () => {
    const calls = 450;
    const said = (n: number) => [
      { role: 'system', content: 'Be brief.' },
      ...Array.from({ length: n + 1 }, (_, turn) => ({ role: 'user', content: `turn ${turn}` })),
    ];
    await store.landSpans(
      Array.from({ length: calls }, (_, n) =>
        of({
          trace_id: 'talk',
          span_id: `call-${n}`,
          started_at: AT + n,
          ended_at: AT + n,
          prompt: JSON.stringify(said(n)),
        }),
      ),
    );
    const steps: Fields[] = [];
    let cursor: unknown = null;
    do {
      const query = typeof cursor === 'string' ? `?cursor=${cursor}` : '';
      const answer = await call(api, 'GET', `/v1/traces/talk/conversation${query}`);
      expect(answer.status).toBe(200);
      steps.push(...((answer.json?.['data'] as Fields)['steps'] as Fields[]));
      const meta = answer.json?.['meta'] as Fields;
      expect(meta['total']).toBe(calls);
      cursor = meta['next_cursor'];
    } while (cursor !== null);
    expect(steps.map((step) => step['span_id'])).toEqual(Array.from({ length: calls }, (_, n) => `call-${n}`));
    for (const [n, step] of steps.entries()) {
      if (n === 0) continue;
      expect(step).toMatchObject({
        base_span_id: `call-${n - 1}`,
        kept: n + 1,
        added: [{ role: 'user', text: `turn ${n}` }],
        changed: [],
        dropped: [],
      });
    }
  });

  it('rejects a cursor that it has not returned', async () => {
    const answer = await call(api, 'GET', '/v1/traces/texts/conversation?cursor=abc');
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  });
});
