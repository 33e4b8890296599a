// Time limits of reads, and that a request waits for no timer, against a server that answers in small parts. The clock is simulated, so a
// busy machine changes nothing.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type ClickHouse, createClickHouse, StoreUnavailable } from '../../../sql/client/client.ts';

const SILENCE_MS = 600;

let server: Server;
let clickhouse: ClickHouse;
let answers: ServerResponse[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  answers = [];
  server = createServer((req, res) => {
    req.resume();
    answers.push(res);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  clickhouse = createClickHouse({
    url: `http://app:x@127.0.0.1:${(server.address() as AddressInfo).port}/millrace`,
  });
});
afterEach(async () => {
  vi.useRealTimers();
  await clickhouse.close();
  server.closeAllConnections();
  server.close();
});

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
/** Resolves once `check` returns true. Simulated time stands still meanwhile. */
async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setImmediate(resolve));
}
/** Returns the answer to the one request. */
async function answer(): Promise<ServerResponse> {
  await until(() => answers.length > 0);
  return answers[0] as ServerResponse;
}

interface Reading {
  /** Records received so far. */
  records: number;
  ended: Promise<void>;
}
function read(): Reading {
  const reading: Reading = { records: 0, ended: Promise.resolve() };
  reading.ended = clickhouse.records(
    { name: 'many', sql: 'SELECT 1 FORMAT RowBinary', timeoutMs: SILENCE_MS },
    4,
    (records) => {
      reading.records += records.length / 4;
    },
  );
  reading.ended.catch(() => undefined);
  return reading;
}

/** Sends a record from time to time. */
async function drip(reading: Reading, records: number): Promise<ServerResponse> {
  const res = await answer();
  for (let sent = 1; sent <= records; sent += 1) {
    await pass(SILENCE_MS - 1);
    res.write(Buffer.from([0, 0, 0, sent]));
    await until(() => reading.records === sent);
  }
  return res;
}

it('the client reads records for as long as they arrive, however long that takes in all', async () => {
  const reading = read();
  (await drip(reading, 20)).end();
  await reading.ended;
  expect(reading.records).toBe(20);
});

it.each([0, 3])('the client gives up when nothing arrives any more (after %i records)', async (records) => {
  const reading = read();
  await drip(reading, records);
  await pass(SILENCE_MS);
  await expect(reading.ended).rejects.toThrow(StoreUnavailable);
});

/** Begins to answer with rows and then stalls. */
async function answerTwoRows(): Promise<void> {
  (await answer()).write('{"n":1}\n{"n":2}\n');
}
const SILENT = { name: 'silent', sql: 'SELECT 1', timeoutMs: SILENCE_MS };

it('the client gives up on rows whose answer has begun and does not continue', async () => {
  const reading = clickhouse.rows(SILENT);
  reading.catch(() => undefined);
  await answerTwoRows();
  await pass(SILENCE_MS);
  await expect(reading).rejects.toThrow(StoreUnavailable);
});

it('the client gives up on a stream that does not continue, however long its reader took before', async () => {
  const seen: unknown[] = [];
  let isReading = false;
  const reading = async (): Promise<void> => {
    for await (const rows of clickhouse.stream<{ n: number }>(SILENT)) {
      isReading = true;
      seen.push(...rows);
      await pass(2 * SILENCE_MS);
      isReading = false;
    }
  };
  const over = new AbortController();
  const ended = reading().finally(() => {
    over.abort();
  });
  ended.catch(() => undefined);
  await answerTwoRows();
  await until(() => seen.length === 2 && !isReading);
  // From here on nothing arrives, and time passes for the stream itself.
  while (!over.signal.aborted) {
    await pass(SILENCE_MS / 10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await expect(ended).rejects.toThrow(StoreUnavailable);
  expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
});

it('the client ends a read whose caller is gone, also in the middle of its answer', async () => {
  const gone = new AbortController();
  const reading = clickhouse.rows({ ...SILENT, timeoutMs: 60_000, signal: gone.signal });
  reading.catch(() => undefined);
  await answerTwoRows();
  gone.abort();
  await expect(reading).rejects.toThrow();
});

it('a read whose kept connection the store closes before an answer is sent once more, and no oftener', async () => {
  vi.useRealTimers();
  let asked = 0;
  server.removeAllListeners('request');
  server.on('request', (req, res: ServerResponse) => {
    req.resume();
    asked += 1;
    if (asked === 2 || asked > 3) res.destroy();
    else res.end('{"one":1}\n');
  });
  const ask = () => clickhouse.rows({ name: 'one', sql: 'SELECT 1 AS one', timeoutMs: 60_000 });
  expect(await ask()).toEqual([{ one: 1 }]);
  expect([await ask(), asked]).toEqual([[{ one: 1 }], 3]);
  await expect(ask()).rejects.toThrow(StoreUnavailable);
  expect(asked).toBe(5);
});
