// How long reads may take, against a server that answers in drops.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { type ClickHouse, createClickHouse, StoreUnavailable } from '../../../sql/client.ts';

const SILENCE_MS = 600;
const DROP_MS = 100;

let server: Server;
let clickhouse: ClickHouse;
afterEach(async () => {
  await clickhouse.close();
  server.closeAllConnections();
  server.close();
});

/** A store that sends a record every now and then, and then ends or falls silent. */
async function aStore(records: number, then: (res: ServerResponse) => void): Promise<void> {
  server = createServer((req, res) => {
    req.resume();
    let sent = 0;
    const drops = setInterval(() => {
      if (sent < records) res.write(Buffer.from([0, 0, 0, sent++]));
      else {
        clearInterval(drops);
        then(res);
      }
    }, DROP_MS);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  clickhouse = createClickHouse({ url: `http://app:x@127.0.0.1:${String((server.address() as AddressInfo).port)}/millrace` });
}

async function read(): Promise<number> {
  let bytes = 0;
  await clickhouse.records({ name: 'many', sql: 'SELECT 1 FORMAT RowBinary', timeoutMs: SILENCE_MS }, 4, (records) => {
    bytes += records.length;
  });
  return bytes / 4;
}

it('reads records for as long as they come, however long that takes in all', async () => {
  await aStore(20, (res) => res.end());
  expect(await read()).toBe(20);
});

it.each([0, 3])('gives up when nothing comes any more (after %i records)', async (records) => {
  await aStore(records, () => undefined);
  await expect(read()).rejects.toThrow(StoreUnavailable);
});

/** A store that begins to answer with rows and then falls silent. */
async function aSilentStore(): Promise<void> {
  server = createServer((req, res) => {
    req.resume();
    res.write('{"n":1}\n{"n":2}\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  clickhouse = createClickHouse({ url: `http://app:x@127.0.0.1:${String((server.address() as AddressInfo).port)}/millrace` });
}
const SILENT = { name: 'silent', sql: 'SELECT 1', timeoutMs: SILENCE_MS };

it('gives up on rows whose answer has begun and does not go on', async () => {
  await aSilentStore();
  await expect(clickhouse.rows(SILENT)).rejects.toThrow(StoreUnavailable);
});

it('gives up on a stream that does not go on, however long its reader took for what came', async () => {
  await aSilentStore();
  const seen: unknown[] = [];
  const reading = async (): Promise<void> => {
    for await (const rows of clickhouse.stream<{ n: number }>(SILENT)) {
      seen.push(...rows);
      await new Promise((resolve) => setTimeout(resolve, 2 * SILENCE_MS));
    }
  };
  await expect(reading()).rejects.toThrow(StoreUnavailable);
  expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
});

it('ends a read whose caller has gone, also in the middle of its answer', async () => {
  await aSilentStore();
  const gone = new AbortController();
  const reading = clickhouse.rows({ ...SILENT, timeoutMs: 60_000, signal: gone.signal });
  setTimeout(() => {
    gone.abort();
  }, DROP_MS);
  await expect(reading).rejects.toThrow();
});
