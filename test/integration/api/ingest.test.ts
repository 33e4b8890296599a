// Ingest against a real nats-server: every event that is answered 200 is in the log as it was sent,
// and an event that cannot be stored is rejected at once.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { STORE_MS_MAX } from '../../../api/http/keyed_store.ts';
import { COMMIT_MS_MAX } from '../../../api/intake/ingest/publisher.ts';
import { INGEST_STREAM, MIXED_SUBJECT } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type IngestEvent, ingestBatchCodec } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { anEvent, call, INGEST, ORG, type RawBody, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await api.close();
  await nats.remove();
});

/** Returns every event of the log with the subject of its message. */
async function logged(of: TestApi): Promise<(IngestEvent & { subject: string })[]> {
  const info = await of.log.jsm.streams.info(INGEST_STREAM);
  const events: (IngestEvent & { subject: string })[] = [];
  for (let seq = info.state.first_seq; seq > 0 && seq <= info.state.last_seq; seq++) {
    const message = await of.log.jsm.streams.getMessage(INGEST_STREAM, { seq });
    if (message === null) continue;
    const batch = ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER));
    events.push(...batch.events.map((event) => ({ ...event, subject: message.subject })));
  }
  return events;
}

const hexOf = (event: unknown): string => createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16);

describe('what is answered 200', () => {
  test('an event answered 200 is in the log as compact JSON, in a shared message, under the ids of the answer', async () => {
    const event = anEvent({ attributes: { z: 1, a: 'é' }, trace_id: 'trace-of-mine' });
    const answer = await call(api, 'POST', `${INGEST}/custom`, { raw: JSON.stringify(event, null, 2) });
    const hex = hexOf(event);
    expect(answer.status).toBe(200);
    expect(answer.json?.['data']).toEqual({ event_id: `evt_${hex}`, trace_id: 'trace-of-mine', span_id: `spn_${hex}` });
    const stored = (await logged(api)).find(({ event_hex }) => event_hex === hex);
    expect(stored).toMatchObject({
      org_id: ORG,
      format: 'custom',
      trace_id: 'trace-of-mine',
      body: JSON.stringify(event),
      subject: MIXED_SUBJECT,
    });
  });

  test('a batch answers with the ids of every event in order', async () => {
    const events = Array.from({ length: 250 }, (_, index) =>
      anEvent({ name: `n${index}`, attributes: { run: 'batch' } }),
    );
    const answer = await call(api, 'POST', `${INGEST}/custom`, { body: { events } });
    const ids = events
      .map(hexOf)
      .map((hex) => ({ event_id: `evt_${hex}`, trace_id: `trc_${hex}`, span_id: `spn_${hex}` }));
    expect(answer.json?.['data']).toEqual({ ...ids[0], accepted: 250, events: ids });
    const bodies = new Set((await logged(api)).map(({ body }) => body));
    expect(events.filter((event) => !bodies.has(JSON.stringify(event)))).toEqual([]);
  });

  test('the other formats are accepted too', async () => {
    const call1 = { duration_ms: 10, outcome: 'success' };
    const messages = [{ role: 'user', content: 'hi' }];
    const bodies = {
      chatcompletion: {
        request: { model: 'm', messages },
        response: {
          id: 'x',
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'yo' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        },
        ...call1,
      },
      messages: {
        request: { model: 'm', messages, max_tokens: 5 },
        response: {
          id: 'x',
          content: [{ type: 'text', text: 'yo' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 1, output_tokens: 1 },
        },
        ...call1,
      },
      chain: {
        request: { model: 'm', messages },
        response: {
          generations: [[{ text: 'yo' }]],
          llm_output: { token_usage: { prompt_tokens: 1, completion_tokens: 1 } },
        },
        chain_name: 'c',
        agent_name: 'a',
        intermediate_steps: [['do', 'done']],
        ...call1,
      },
      app: {
        events: [
          {
            event_type: 'view',
            user_id: 'u',
            session_id: 's1',
            url: '/',
            timestamp: '2026-01-01T00:00:00Z',
            attributes: {},
          },
        ],
      },
    };
    for (const [format, body] of Object.entries(bodies)) {
      const answer = await call(api, 'POST', `${INGEST}/${format}`, { body });
      expect([format, answer.status, answer.text.slice(0, 200)]).toEqual([format, 200, expect.any(String)]);
    }
    const session = `trc_${createHash('sha256').update('s1').digest('hex').slice(0, 16)}`;
    expect((await logged(api)).filter(({ trace_id }) => trace_id === session)).toHaveLength(1);
  });

  test('concurrent requests share messages, and none is lost', async () => {
    const before = (await api.log.jsm.streams.info(INGEST_STREAM)).state.messages;
    const names = Array.from({ length: 400 }, (_, index) => `shared-${index}`);
    const answers = await Promise.all(
      names.map((name) => call(api, 'POST', `${INGEST}/custom`, { body: anEvent({ name, trace_id: 'one' }) })),
    );
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const messages = (await api.log.jsm.streams.info(INGEST_STREAM)).state.messages - before;
    expect(messages).toBeLessThan(names.length);
    const stored = (await logged(api)).filter(({ body }) => body.includes('"shared-'));
    expect(stored.map(({ body }) => (JSON.parse(body) as { name: string }).name).sort()).toEqual([...names].sort());
  });
});

describe('bodies', () => {
  test('bodies in gzip and br are accepted, as is a body without a content type', async () => {
    const text = JSON.stringify(anEvent({ name: 'packed' }));
    expect(
      (await call(api, 'POST', `${INGEST}/custom`, { raw: gzipSync(text), headers: { 'Content-Encoding': 'gzip' } }))
        .status,
    ).toBe(200);
    expect(
      (
        await call(api, 'POST', `${INGEST}/custom`, {
          raw: brotliCompressSync(text),
          headers: { 'Content-Encoding': 'br' },
        })
      ).status,
    ).toBe(200);
    expect(
      (await call(api, 'POST', `${INGEST}/custom`, { raw: Buffer.from(text), headers: { 'Content-Type': '' } })).status,
    ).toBe(200);
    expect(
      (
        await call(api, 'POST', `${INGEST}/custom`, {
          raw: text,
          headers: { 'Content-Type': 'application/json; charset=UTF-8' },
        })
      ).status,
    ).toBe(200);
  });

  test('the size limit holds exactly for plain, chunked and decompressed bodies', async () => {
    const cap = 5_242_880;
    const shell = JSON.stringify(anEvent({ attributes: { text: '' } }));
    const ofSize = (bytes: number) =>
      Buffer.from(shell.replace('"text":""', `"text":"${'x'.repeat(bytes - shell.length)}"`));
    const status = async (raw: RawBody, headers: Record<string, string> = {}) =>
      (await call(api, 'POST', `${INGEST}/custom`, { raw, headers })).status;
    expect(await status(ofSize(cap))).toBe(200);
    expect(await status(ofSize(cap + 1))).toBe(413);
    expect(await status(gzipSync(ofSize(cap)), { 'Content-Encoding': 'gzip' })).toBe(200);
    expect(await status(gzipSync(ofSize(cap + 1)), { 'Content-Encoding': 'gzip' })).toBe(413);
    expect(
      await status(
        brotliCompressSync(Buffer.alloc(64 * 1024 * 1024), { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }),
        {
          'Content-Encoding': 'br',
        },
      ),
    ).toBe(413);
    const chunked = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let sent = 0; sent < 8; sent++) controller.enqueue(new Uint8Array(1024 * 1024));
        controller.close();
      },
    });
    const refused = await call(api, 'POST', `${INGEST}/custom`, { raw: chunked });
    expect([refused.status, refused.json?.['code']]).toEqual([413, 'payload_too_large']);
  });

  test('a declared length beyond the limit is rejected before a byte of it is sent', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const req = request({
        port: api.port,
        method: 'POST',
        path: `${INGEST}/custom`,
        headers: {
          'X-Org-Api-Key': 'sk_svc_testkeytestkeytestkey',
          'Content-Type': 'application/json',
          'Content-Length': 10_000_000_000,
        },
      });
      req.on('response', (res) => {
        resolve(res.statusCode);
        req.destroy();
      });
      req.on('error', reject);
      req.flushHeaders();
    });
    expect(status).toBe(413);
  });

  test.each([
    ['not JSON', '{"a":', {}, 422, 'decode_failed'],
    ['nothing', '', {}, 422, 'decode_failed'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 422, 'decode_failed'],
    ['truncated gzip', gzipSync('{"name":"x"}').subarray(0, 15), { 'Content-Encoding': 'gzip' }, 422, 'decode_failed'],
    ['an unknown encoding', '{}', { 'Content-Encoding': 'compress' }, 415, 'unsupported_media_type'],
    ['another content type', '{}', { 'Content-Type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['JSON nested without end', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, {}, 422, 'decode_failed'],
  ])('%s is rejected', async (_what, raw, headers, status, code) => {
    const answer = await call(api, 'POST', `${INGEST}/custom`, { raw, headers });
    expect([answer.status, answer.json?.['code']]).toEqual([status, code]);
  });

  test('a rejection names index and field, and stores nothing of its batch', async () => {
    const events = [anEvent({ name: 'innocent' }), anEvent(), anEvent(), anEvent({ duration_ms: 'long' })];
    const answer = await call(api, 'POST', `${INGEST}/custom`, { body: { events } });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'decode_failed']);
    expect(answer.json?.['detail']).toMatch(/^events\[3\]\.duration_ms: /);
    expect((await logged(api)).some(({ body }) => body.includes('innocent'))).toBe(false);
  });

  test('an invalid amount is named, beside the attributes as in them, and nothing is stored', async () => {
    const call1 = { request: { model: 'm', messages: [] }, duration_ms: 1, outcome: 'error' };
    for (const [format, body, field] of [
      ['chatcompletion', { ...call1, cost_usd: 'free' }, 'cost_usd'],
      ['messages', { ...call1, cost_usd: -5 }, 'cost_usd'],
      ['chain', { ...call1, chain_name: 'c', sandbox_seconds: 1e300 }, 'sandbox_seconds'],
      ['custom', { events: [anEvent(), anEvent({ sandbox_seconds: 'long' })] }, 'events[1].sandbox_seconds'],
      ['app', { events: [{ event_type: 'view', session_id: 'amounts', cost_usd: 1_000_000 }] }, 'events[0].cost_usd'],
      ['custom', anEvent({ attributes: { cost_usd: 'free' } }), 'attributes.cost_usd'],
    ] as const) {
      const before = (await logged(api)).length;
      const { status, json } = await call(api, 'POST', `${INGEST}/${format}`, { body });
      const [named, why] = String(json?.['detail']).split(': ');
      expect([format, status, json?.['code'], named]).toEqual([format, 422, 'decode_failed', field]);
      expect(why).toMatch(/^must be a number from 0 to \d+/);
      expect((await logged(api)).length).toBe(before);
    }
    const nothing = anEvent({ cost_usd: null, sandbox_seconds: null, attributes: { cost_usd: null } });
    expect((await call(api, 'POST', `${INGEST}/custom`, { body: nothing })).status).toBe(200);
  });

  test.each([
    ['an empty batch', { events: [] }],
    ['1001 events', { events: Array.from({ length: 1001 }, () => anEvent()) }],
    ['an end in the future', anEvent({ ended_at: '2999-01-01T00:00:00Z' })],
    [
      'nesting beyond reason',
      anEvent({ attributes: { deep: JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown } }),
    ],
  ])('%s is rejected', async (_what, body) => {
    const answer = await call(api, 'POST', `${INGEST}/custom`, { body });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'decode_failed']);
  });

  test('an unknown format is decode_failed, another method 405', async () => {
    const unknown = await call(api, 'POST', `${INGEST}/telegram`, { body: anEvent() });
    expect([unknown.status, unknown.json?.['code']]).toEqual([422, 'decode_failed']);
    const get = await call(api, 'GET', `${INGEST}/custom`);
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('an event whose compact form exceeds the largest message is 413, not a 5xx', async () => {
    const numbers = `[${Array.from({ length: 500_000 }, () => '1e20').join(',')}]`;
    const answer = await call(api, 'POST', `${INGEST}/custom`, {
      raw: `{"name":"n","outcome":"success","attributes":{"n":${numbers}}}`,
    });
    expect([answer.status, answer.json?.['code']]).toEqual([413, 'payload_too_large']);
  });
});

describe('ingest into a log that cannot store', () => {
  let ownNats: TestNats;
  let ownApi: TestApi;
  let names = 0;
  beforeEach(async () => {
    ownNats = await startTestNats();
    const waits = { commitMsMax: COMMIT_MS_MAX, keyMsMax: STORE_MS_MAX };
    ownApi = await startTestApi({ natsUrl: ownNats.url, logBytesMax: 2 * 1024 * 1024, waits });
  });
  afterEach(async () => {
    await ownApi.close();
    await ownNats.remove();
  });

  // test/unit/api/publisher.test.ts asserts on a simulated clock that ingest waits for at most
  // COMMIT_MS_MAX.
  const ingestOne = async () => {
    const answer = await call(ownApi, 'POST', `${INGEST}/custom`, {
      body: anEvent({ name: `event-${++names}` }),
    });
    return [answer.status, answer.json?.['code']];
  };
  const UNAVAILABLE = [502, 'upstream_unavailable'];
  const accepts = async (): Promise<boolean> => (await ingestOne())[0] === 200;

  test('answers 502 from the first request on after NATS was killed, and 200 again once it is back', async () => {
    await eventually(accepts);
    await ownNats.kill();
    const answers = await Promise.all(Array.from({ length: 20 }, ingestOne));
    expect(answers).toEqual(Array.from({ length: 20 }, () => UNAVAILABLE));
    expect(await ingestOne()).toEqual(UNAVAILABLE);
    await ownNats.start();
    await eventually(accepts, { what: 'ingest after the restart' });
  });

  test('answers 502 instead of waiting while NATS is frozen, and 200 again once it continues', async () => {
    const { pid } = ownNats.server.child;
    if (pid === undefined) throw new Error('no nats-server');
    process.kill(pid, 'SIGSTOP');
    await eventually(
      () => execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('T'),
      {
        what: 'the stop',
      },
    );
    const hung = await ingestOne().finally(() => process.kill(pid, 'SIGCONT'));
    expect(hung).toEqual(UNAVAILABLE);
    await eventually(accepts, { what: 'ingest after the hang' });
  });

  test('answers 429 with Retry-After while the log is full', async () => {
    const text = Array.from({ length: 4000 }, () => Math.random().toString(36)).join('');
    let last = await call(ownApi, 'POST', `${INGEST}/custom`, { body: anEvent() });
    // A late confirmation is answered 502, although the events may be stored.
    for (let sent = 0; sent < 400 && last.status !== 429; sent++) {
      last = await call(ownApi, 'POST', `${INGEST}/custom`, {
        body: {
          events: Array.from({ length: 4 }, (_, index) =>
            anEvent({ attributes: { text: text + String(sent * 4 + index) } }),
          ),
        },
      });
    }
    expect([last.status, last.json?.['code']]).toEqual([429, 'rate_limited']);
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
