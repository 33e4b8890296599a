// The words of search, asked through the public API: the languages of the contract, what of a chat is
// a word, phrases, and the same words for the ranked search, the list of traces and one trace.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

type Fields = Record<string, unknown>;
interface Marked {
  span_id: string;
  snippet: string;
  marks: [number, number][];
}

const AT = Date.parse('2026-02-03T04:05:06.789Z');
const chat = (...contents: unknown[]): string => JSON.stringify(contents.map((content) => ({ role: 'user', content })));

/** Prompt and response by span; each span is a trace of its own. */
const TEXTS: Record<string, [string, string]> = {
  chat: [chat('about my\nreservation', 'in "Lisbon"'), 'It is confirmed'],
  german: [chat('Die Größe der STRASSE'), 'Müßig, aber schön'],
  french: [chat('un cafe\u0301 très fort'), 'Ça ira'],
  width: [chat('Ｆｕｌｌ　ｗｉｄｔｈ'), 'ﬁnal ②'],
  chinese: [chat('北京大学的图书馆'), '好的'],
  japanese: [chat('私は東京都に住んでいます。ラーメン'), 'ｶﾞｰﾄﾞ'],
  korean: [chat('한국어를 배우고 있어요'), '좋아요'],
  thai: [chat('ขอบคุณครับ สวัสดี'), 'ไม่เป็นไร'],
  arabic: [chat('السلام عَلَيْكُم'), 'مرحبا'],
  mixed: [chat('iPhone用ケース😀красный'), 'naïve🎉Größe'],
  tools: [
    JSON.stringify([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_9',
            type: 'function',
            function: { name: 'lookup_fare', arguments: '{"city":"Porto","max":199.50}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_9', content: '{"status":"sold\\nout"}' },
    ]),
    '{"answer":"unavailable"}',
  ],
  parts: [
    chat([
      { type: 'text', text: 'look here' },
      { type: 'image_url', image_url: { url: 'https://pictures.test/x.png' } },
    ]),
    '',
  ],
  json: ['{"question":"how\\ttall","height":1234567890123456789}', 'plain: {not json'],
  written: [chat('the role of content for a user'), ''],
};

let nats: TestNats;
let store: TestStore;
let api: TestApi;

beforeAll(async () => {
  [nats, store] = await Promise.all([startTestNats(), openTestStore()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  const spans = Object.entries(TEXTS).map(([name, [prompt, response]], n) =>
    aSpan({ org_id: ORG, trace_id: name, span_id: name, started_at: AT + n, ended_at: AT + n, prompt, response }),
  );
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 })));
  await store.moveTexts();
}, 120_000);
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

async function read(path: string): Promise<Fields> {
  const answer = await call(api, 'GET', path);
  expect([path, answer.status, answer.json?.['detail']]).toEqual([path, 200, undefined]);
  return answer.json ?? {};
}

const asked = (q: string): string => encodeURIComponent(q);
async function ranked(q: string): Promise<string[]> {
  const { data } = (await read(`/v1/spans/search?q=${asked(q)}`)) as { data: Marked[] };
  return data.map(({ span_id }) => span_id).toSorted();
}
async function listed(q: string): Promise<string[]> {
  const { data } = (await read(`/v1/traces?search=${asked(q)}`)) as { data: { trace_id: string }[] };
  return data.map(({ trace_id }) => trace_id).toSorted();
}
const marksOf = ({ snippet, marks }: Marked): string[] => marks.map(([start, end]) => snippet.slice(start, end));

describe('the words of search', () => {
  it.each([
    ['reservation', ['chat'], ['reservation']],
    ['LISBON', ['chat'], ['Lisbon']],
    ['größe', ['german', 'mixed'], ['Größe']],
    ['grosse', ['german', 'mixed'], ['Größe']],
    ['straße', ['german'], ['STRASSE']],
    ['mussig', ['german'], ['Müßig']],
    ['CAFÉ', ['french'], ['cafe\u0301']],
    ['ca', ['french'], ['Ça']],
    ['full', ['width'], ['Ｆｕｌｌ']],
    ['final', ['width'], ['ﬁnal']],
    ['2', ['width'], ['②']],
    ['图书馆', ['chinese'], ['图书馆']],
    ['大学', ['chinese'], ['大学']],
    ['東京都', ['japanese'], ['東京都']],
    ['ラーメン', ['japanese'], ['ラーメン']],
    ['ガード', ['japanese'], ['ｶﾞｰﾄﾞ']],
    ['한국어', ['korean'], ['한국어']],
    ['สวัสดี', ['thai'], ['สวัสดี']],
    ['عليكم', ['arabic'], ['عَلَيْكُم']],
    ['iphone', ['mixed'], ['iPhone']],
    ['ケース', ['mixed'], ['ケース']],
    ['КРАСНЫЙ', ['mixed'], ['красный']],
    ['lookup_fare', ['tools'], ['lookup', 'fare']],
    ['porto', ['tools'], ['Porto']],
    ['"199 50"', ['tools'], ['199.50']],
    ['"sold out"', ['tools'], ['sold out']],
    ['unavailable', ['tools'], ['unavailable']],
    ['tall', ['json'], ['tall']],
    ['1234567890123456789', ['json'], ['1234567890123456789']],
  ])('finds and marks %s', async (q, spans, marks) => {
    expect(await ranked(q)).toEqual(spans);
    expect(await listed(q)).toEqual(spans);
    const { data } = (await read(`/v1/spans/search?snippets=true&q=${asked(q)}`)) as { data: Marked[] };
    expect(data.map(marksOf)).toEqual(spans.map(() => marks));
    for (const span of spans) {
      const found = (await read(`/v1/traces/${span}/matches?q=${asked(q)}`)) as { data: Marked[] };
      expect(found.data.map(marksOf)).toEqual([marks]);
    }
  });

  it.each(['role', 'content', 'user'])('finds %s only where somebody wrote it', async (q) => {
    expect(await ranked(q)).toEqual(['written']);
    expect(await listed(q)).toEqual(['written']);
    expect(await read(`/v1/traces/chat/matches?q=${q}`)).toMatchObject({ data: [] });
  });

  it.each([
    'nreservation',
    'assistant',
    'function',
    'call_9',
    'arguments',
    'status',
    'question',
    'image_url',
    'pictures',
    'reserv',
  ])('does not find %s, which is no word of any text', async (q) => {
    expect(await ranked(`"${q}"`)).toEqual([]);
    expect(await listed(q)).toEqual([]);
  });
});

describe('quoted phrases', () => {
  it.each([
    ['"my reservation"', ['chat']],
    ['"reservation in lisbon"', ['chat']],
    ['"Lisbon it is"', ['chat']],
    ['"größe der strasse"', ['german']],
    ['"der größe"', []],
    ['"my lisbon"', []],
    ['"東京都に住"', ['japanese']],
    ['"ese vation"', []],
    ['confirmed "my reservation"', ['chat']],
    ['schön "my reservation" "in lisbon"', ['chat']],
  ])('%s matches consecutive words of the plain text', async (q, spans) => {
    expect(await ranked(q)).toEqual(spans);
    if (!q.startsWith('schön')) expect(await listed(q)).toEqual(spans);
  });
});

describe('a query without a word', () => {
  it.each(['', '%20', '%3F%21', '%22%22', '%F0%9F%98%80'])('is rejected: %s', async (q) => {
    for (const path of [`/v1/spans/search?q=${q}`, `/v1/traces?search=${q}`, `/v1/traces/chat/matches?q=${q}`]) {
      const { status, json } = await call(api, 'GET', path);
      expect([path, status, json?.['code']]).toEqual([path, 422, 'invalid_request']);
    }
  });
});
