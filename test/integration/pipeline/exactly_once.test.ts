// The exactly-once guarantee of the pipeline under kill -9, pauses and restarts of each of its
// processes.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { DEAD_LETTERS_STREAM } from '../../../schemas/streams.ts';
import { deadLetterCodec, FINGERPRINT_HEADER, ingestBatchCodec, type IngestEvent } from '../../../schemas/codec.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 120_000 });

let engine: TestEngine;
let nats: TestNats;
let log: TestLog;
let workers: TestWorker[] = [];
let url = '';

const spawn = (more: Record<string, string> = {}): TestWorker => {
  const worker = startWorker({ natsUrl: nats.url, clickhouseUrl: url, more });
  workers.push(worker);
  return worker;
};
const rows = async <T>(sql: string): Promise<T[]> => {
  const text = await runStatement(
    url,
    `${sql} FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0`,
  );
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
};
const one = async (sql: string): Promise<number> => (await rows<{ n: number }>(sql))[0]?.n ?? NaN;

/** Returns events of one LLM call each, ten to a trace. The first event of a trace is its root. */
function someEvents(from: number, count: number): IngestEvent[] {
  return Array.from({ length: count }, (_, i) => {
    const n = from + i;
    const trace = Math.floor(n / 10);
    return logged('chatcompletion', {
      request: { model: 'gpt-4o', messages: [{ role: 'user', content: `question number ${n}` }] },
      response: {
        id: `r${n}`,
        model: 'gpt-4o',
        choices: [{ index: 0, message: { role: 'assistant', content: `answer number ${n}` }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      },
      duration_ms: 5,
      outcome: 'success',
      trace_id: `trace-${trace}`,
      ...(n % 10 === 0 ? {} : { parent_span_id: 'root' }),
      attributes: { agent_id: `agent-${trace % 3}` },
    });
  });
}
const partitionOf = (event: IngestEvent): number => Number(event.trace_id.split('-')[1]) % PARTITIONS;
const publish = (events: IngestEvent[]): Promise<void> => log.publish(events, partitionOf);

async function landed(count: number, withinMs = 20_000): Promise<void> {
  await eventually(async () => (await one('SELECT toUInt64(uniqExact(event_key)) AS n FROM spans')) >= count, {
    withinMs,
    what: `${count} events in the store`,
  });
}

/** Waits until `count` events have landed, then checks every invariant of the pipeline. */
async function expectExactly(count: number): Promise<void> {
  await eventually(async () => (await one('SELECT toUInt64(sum(events)) AS n FROM usage_events')) >= count, {
    what: 'usage',
  });
  await eventually(async () => (await one('SELECT toInt64(sum(sign * spans)) AS n FROM traces')) >= count, {
    what: 'traces',
  });
  await eventually(
    async () =>
      (await one('SELECT toUInt64(count()) AS n FROM span_texts')) >= count &&
      (await one('SELECT toUInt64(count()) AS n FROM span_texts_recent')) === 0,
    { what: 'texts moved' },
  );
  expect(
    await rows(
      'SELECT toUInt64(count()) AS rows, toUInt64(uniqExact(event_key)) AS ids, toUInt64(sum(input_tokens)) AS tokens FROM spans',
    ),
  ).toEqual([{ rows: count, ids: count, tokens: count * 100 }]);
  expect(await rows('SELECT toUInt64(count()) AS rows, toUInt64(uniqExact(event_key)) AS ids FROM span_texts')).toEqual(
    [{ rows: count, ids: count }],
  );
  expect(
    await rows('SELECT toUInt64(sum(events)) AS events, toUInt64(sum(input_tokens)) AS tokens FROM usage_events'),
  ).toEqual([{ events: count, tokens: count * 100 }]);
  const traces = count / 10;
  expect(
    await rows(
      'SELECT toInt64(sum(sign)) AS traces, toInt64(sum(sign * spans)) AS spans, toInt64(sum(sign * toInt64(input_tokens))) AS tokens FROM traces',
    ),
  ).toEqual([{ traces, spans: count, tokens: count * 100 }]);
  expect(
    await one(
      'SELECT toUInt64(count()) AS n FROM (SELECT trace_id FROM traces GROUP BY org_id, trace_id HAVING sum(sign) != 1)',
    ),
  ).toBe(0);
  expect(
    await one(
      'SELECT toUInt64(count()) AS n FROM (SELECT sum(cost_usd) AS a FROM spans) AS s, (SELECT sum(sign * cost_usd) AS b FROM traces) AS t, (SELECT sum(cost_usd) AS c FROM usage_events) AS u WHERE a = b AND b = c',
    ),
  ).toBe(1);
}

beforeAll(async () => {
  engine = await startTestEngine();
});
afterAll(() => engine.remove());

beforeEach(async () => {
  nats = await startTestNats();
  log = await openTestLog(nats.url);
  url = engine.url;
  await runStatement(url, 'DROP DATABASE IF EXISTS millrace SYNC', '');
});
afterEach(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await Promise.all(workers.map(({ exited }) => exited));
  workers = [];
  await log.close();
  await nats.remove();
});

describe('a pipeline worker', () => {
  it('a worker lands every event once and reports every trace', async () => {
    await spawn().ready;
    const events = someEvents(0, 200);
    await publish(events);
    await publish(events);
    await landed(200);
    await expectExactly(200);
    const told = await toldEvents(log.log);
    await eventually(
      async () => (await toldEvents(log.log)).filter(({ event }) => event === 'trace.completed').length >= 20,
      {
        what: 'trace.completed',
      },
    );
    expect(new Set(told.map(({ event_id }) => event_id)).size).toBe(told.length);
    const completed = (await toldEvents(log.log))
      .filter(({ event }) => event === 'trace.completed')
      .map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
    expect(completed.map(({ input_tokens }) => input_tokens)).toEqual(Array.from({ length: 20 }, () => 1000));
  });

  it('a worker that is killed repeatedly loses and doubles nothing', async () => {
    let worker = spawn();
    await worker.ready;
    const total = 6;
    for (let round = 0; round < total; round += 1) {
      for (let batch = 0; batch < 5; batch += 1) await publish(someEvents(round * 1000 + batch * 200, 200));
      // Each round interrupts the landing at a different moment.
      await eventually(
        async () => (await one('SELECT toUInt64(count()) AS n FROM spans')) > round * 1000 + round * 130,
      );
      worker.kill('SIGKILL');
      await worker.exited;
      worker = spawn();
    }
    await landed(total * 1000, 30_000);
    await expectExactly(total * 1000);
  });

  it('a worker that wakes from a pause writes nothing when another owns its partitions', async () => {
    const first = spawn();
    await first.ready;
    await publish(someEvents(0, 1000));
    await eventually(async () => (await one('SELECT toUInt64(count()) AS n FROM spans')) > 0);
    await publish(someEvents(1000, 1000));
    first.kill('SIGSTOP');
    const second = spawn();
    await second.ready;
    await landed(2000);
    await publish(someEvents(2000, 500));
    first.kill('SIGCONT');
    await publish(someEvents(2500, 500));
    await landed(3000);
    await expectExactly(3000);
  });

  it('a worker continues with a new log beside an old store, whatever epochs the store has seen', async () => {
    const client = createClickHouse({ url });
    await migrate(client, {});
    await client.close();
    await runStatement(
      url,
      `INSERT INTO landing_fences (partition, epoch, worker_id) SELECT number, 7, 'old' FROM numbers(${PARTITIONS})`,
    );
    await spawn().ready;
    await publish(someEvents(0, 100));
    await landed(100);
    await expectExactly(100);
  });

  it('a worker shares the partitions with a second one, and takes them over when that one dies', async () => {
    const first = spawn();
    await first.ready;
    const second = spawn();
    await second.ready;
    const kv = await log.log.bucket('partitions');
    const owners = async (): Promise<string[]> => {
      const records = await Promise.all(
        Array.from({ length: PARTITIONS }, (_, partition) => kv.get(`partition.${partition}`)),
      );
      return records.map((record) => record?.json<{ owner: string }>().owner ?? '');
    };
    await eventually(
      async () => {
        const all = await owners();
        return !all.includes('') && new Set(all).size === 2;
      },
      { what: 'an even share' },
    );
    await publish(someEvents(0, 1000));
    second.kill('SIGKILL');
    await second.exited;
    await eventually(async () => new Set(await owners()).size === 1, { what: 'the dead worker replaced' });
    await publish(someEvents(1000, 1000));
    await landed(2000);
    await expectExactly(2000);
  });

  it('a worker continues where it was when the store or the log is killed', async () => {
    await spawn().ready;
    await publish(someEvents(0, 1000));
    await eventually(async () => (await one('SELECT toUInt64(count()) AS n FROM spans')) > 0);
    await engine.kill();
    await publish(someEvents(1000, 1000));
    await engine.start();
    await landed(2000, 30_000);
    await nats.kill();
    await nats.start();
    await eventually(async () => {
      await publish(someEvents(2000, 1000));
      return true;
    });
    await landed(3000, 30_000);
    await expectExactly(3000);
  });

  it('a worker recovers partitions once although the store goes away in the middle', async () => {
    const first = spawn();
    await first.ready;
    await publish(someEvents(0, 1000));
    await eventually(async () => (await one('SELECT toUInt64(count()) AS n FROM spans')) > 0);
    first.kill('SIGKILL');
    await first.exited;
    const kv = await log.log.bucket('partitions');
    const owner = async (): Promise<string> => (await kv.get('partition.0'))?.json<{ owner: string }>().owner ?? '';
    const former = await owner();
    spawn();
    await publish(someEvents(1000, 1000));
    await eventually(async () => (await owner()) !== former, { what: 'a new owner' });
    await engine.kill();
    await publish(someEvents(2000, 1000));
    await engine.start();
    await landed(3000, 30_000);
    await expectExactly(3000);
  });

  it('a worker dead-letters what it cannot read and lands the neighbours', async () => {
    await spawn().ready;
    await log.publishRaw(0, Buffer.from('no avro'), ingestBatchCodec.fingerprint);
    await log.publishRaw(1, Buffer.from('whatever'), 'feedfeedfeedfeed');
    await publish([...someEvents(0, 100), logged('chatcompletion', { not: 'a chat completion', trace_id: 'trace-1' })]);
    await landed(100);
    await expectExactly(100);
    await eventually(async () => (await log.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages === 3, {
      what: 'three dead letters',
    });
    const letters = await Promise.all(
      [1, 2, 3].map(async (seq) => {
        const message = await log.log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq });
        return message === null ? null : deadLetterCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER));
      }),
    );
    expect(letters.map((letter) => letter?.reason).toSorted()).toEqual([
      'decode_failed',
      'unknown_schema',
      'unreadable_message',
    ]);
    expect(letters.find((letter) => letter?.reason === 'decode_failed')?.body.toString()).toContain('not');
  });
});
