// SIGKILL of an API process during keyed requests: another process repeats the answers that the
// killed process gave, no key stays blocked for longer than a few seconds, and no event is
// duplicated or lost.
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import {
  ADMIN_TOKEN,
  anEvent,
  type Answer,
  call,
  INGEST,
  JWT_SECRET,
  KEY,
  ORG,
  startTestApi,
  type TestApi,
} from './an_api.ts';

let nats: TestNats;
let survivor: TestApi;
let victim: ChildProcess;
let at: { url: string };

beforeAll(async () => {
  nats = await startTestNats();
  survivor = await startTestApi({ natsUrl: nats.url });
  victim = fork(new URL('../../../api/main.ts', import.meta.url), {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SERVICE_NATS_URL: nats.url,
      SERVICE_CLICKHOUSE_URL: 'http://app:secret@127.0.0.1:9/millrace',
      SERVICE_PORT: '0',
      SERVICE_PARTITIONS: '4',
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_JWT_SECRET: JWT_SECRET,
    },
  });
  const [said] = (await once(victim, 'message')) as [{ port: number }];
  at = { url: `http://127.0.0.1:${said.port}` };
});

afterAll(async () => {
  victim.kill('SIGKILL');
  await survivor.close();
  await nats.remove();
});

interface Sent {
  key: string;
  path: string;
  body: { name: string };
  /** Answer of the process that was killed; null if it did not answer. */
  first: Answer | null;
}

const send = (api: { url: string }, { key, path, body }: Sent): Promise<Answer> =>
  call(api, 'POST', path, { body, headers: { 'Idempotency-Key': key } });

async function namesInLog(): Promise<Set<string>> {
  const names = new Set<string>();
  const { state } = await survivor.log.jsm.streams.info(INGEST_STREAM);
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await survivor.log.jsm.streams.getMessage(INGEST_STREAM, { seq });
    if (message === null) continue;
    for (const { body } of ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events)
      names.add((JSON.parse(body) as { name: string }).name);
  }
  return names;
}

test('after a process is killed, another one repeats its kept answers and takes over its unanswered requests', async () => {
  const sent: Sent[] = [];
  let answered = 0;
  const sender = async (lane: number) => {
    for (;;) {
      const key = randomUUID();
      const ingest = lane % 4 !== 0;
      const one: Sent = ingest
        ? { key, path: `${INGEST}/custom`, body: { name: key, ...anEvent({ name: key }) }, first: null }
        : { key, path: `/orgs/${ORG}/api-keys`, body: { name: key, ...{ scopes: ['traces:read'] } }, first: null };
      sent.push(one);
      one.first = await send(at, one).catch(() => null);
      if (one.first === null) return;
      answered++;
    }
  };
  const senders = Array.from({ length: 16 }, (_, lane) => sender(lane));
  await eventually(() => answered > 200, { what: 'traffic' });
  victim.kill('SIGKILL');
  await Promise.all(senders);

  const open = sent.filter(({ first }) => first === null);
  expect(open.length).toBeGreaterThan(0);
  // Requests are repeated one after the other. A repeat that is answered idempotency_in_progress is
  // sent again until its key is released.
  const again = new Map<Sent, Answer>();
  for (const one of sent) {
    await eventually(
      async () => {
        const answer = await send(survivor, one);
        if (answer.json?.['code'] === 'idempotency_in_progress') return false;
        again.set(one, answer);
        return true;
      },
      { what: 'the key to be free' },
    );
  }
  for (const one of sent) {
    const answer = again.get(one);
    expect(answer?.status).toBe(one.path.endsWith('/custom') ? 200 : 201);
    if (one.first !== null)
      expect([answer?.text, answer?.headers.get('idempotency-replayed')]).toEqual([one.first.text, 'true']);
  }

  const events = sent.filter(({ path }) => path.endsWith('/custom')).map(({ key }) => key);
  expect((await namesInLog()).symmetricDifference(new Set(events)).size).toBe(0);
  const kept = sent.filter(({ path, first }) => path.endsWith('/api-keys') && first !== null).map(({ key }) => key);
  const made: string[] = [];
  for (let offset = 0; ; offset += 200) {
    const page = await call(survivor, 'GET', `/orgs/${ORG}/api-keys?limit=200&offset=${offset}`);
    const names = (page.json?.['data'] as { name: string }[]).map(({ name }) => name);
    made.push(...names);
    if (names.length < 200) break;
  }
  for (const key of kept) expect(made.filter((name) => name === key)).toHaveLength(1);
});
