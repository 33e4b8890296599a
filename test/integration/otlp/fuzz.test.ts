// Hostile telemetry against a real service, for each protocol of the intake besides ingest: no request
// causes a 5xx, every record that was accepted has exactly one row, and none became a dead letter.
// FUZZ_CASES=10000 sends as many requests to each protocol. The seed is fixed.
import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEAD_LETTERS_STREAM } from '../../../schemas/streams.ts';
import { decodeAnswer } from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { type Account, anAccount } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';
import type { TestApi } from '../api/an_api.ts';
import {
  damaged,
  type Hostile,
  hostileIngestion,
  hostileLogs,
  hostileMetrics,
  type HostileRequest,
  hostileRuns,
  hostileSpans,
} from './hostile_telemetry.ts';

const SEED = 20_261_124;
const CASES = Number(process.env['FUZZ_CASES'] ?? 250);
const LANES = 8;
/** Time for which a busy service is asked again, and the time for everything to land, in ms. */
const BUSY_MS_MAX = 60_000;
const LAND_MS_MAX = 60_000 + CASES * 60;

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_LANGFUSE_OPEN_MS: '2000' } });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
});

interface Heard {
  status: number;
  bytes: Uint8Array;
  isBinary: boolean;
}

/** Sends a request again while the answer says that the service is busy, as clients do. */
async function send({ path, type, body }: HostileRequest, { key }: Account): Promise<Heard> {
  const deadline = performance.now() + BUSY_MS_MAX;
  for (;;) {
    const headers = { 'X-Org-Api-Key': String(key['X-Org-Api-Key']), 'Content-Type': type };
    const response = await fetch(api.url + path, { method: 'POST', headers, body: new Uint8Array(body) });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const isBusy = response.status === 429 || response.status === 502;
    if (!isBusy || performance.now() > deadline)
      return {
        status: response.status,
        bytes,
        isBinary: response.headers.get('content-type') === 'application/x-protobuf',
      };
    await sleep(200);
  }
}

/** Sends CASES requests. Resolves with what `accepted` returned for each, and with the failures. */
async function run<T>(
  hostile: fc.Arbitrary<Hostile>,
  account: Account,
  accepted: (request: HostileRequest, heard: Heard) => T[],
): Promise<T[]> {
  const cases = fc.sample(hostile, { seed: SEED, numRuns: CASES });
  const queue = cases.entries();
  const kept: T[] = [];
  const failures: string[] = [];
  const lane = async (): Promise<void> => {
    for (const [index, make] of queue) {
      const request = make(index);
      const heard = await send(request, account);
      const said = Buffer.from(heard.bytes).toString();
      if (heard.status >= 500 || heard.status < 200)
        failures.push(`${heard.status} ${said.slice(0, 200)} to ${request.body.toString().slice(0, 500)}`);
      kept.push(...accepted(request, heard));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  expect(failures).toEqual([]);
  return kept;
}

const deadLetters = async (): Promise<number> => (await api.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages;

/** Returns how often each value of a column stands in the spans of an organization. */
async function counted(org: string, column: string): Promise<Map<string, number>> {
  const text = await service.database.run(
    `SELECT ${column} AS found, count() FROM spans WHERE org_id = '${org}' GROUP BY found FORMAT JSONCompactEachRow`,
  );
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as [string, number | string])
      .map(([found, count]) => [found, Number(count)]),
  );
}

/** Waits until every value is there, and expects each to be there once. */
async function expectOnce(org: string, column: string, wanted: readonly string[], total: number | null): Promise<void> {
  let found = new Map<string, number>();
  await eventually(
    async () => {
      found = await counted(org, column);
      return wanted.every((one) => found.has(one)) && (total === null || sumOf(found) >= total);
    },
    { withinMs: LAND_MS_MAX, what: `${wanted.length} records to land` },
  );
  expect([...found].filter(([one, count]) => one !== '' && count > 1)).toEqual([]);
  if (total !== null) expect(sumOf(found)).toBe(total);
  expect(await deadLetters()).toBe(0);
}
const sumOf = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((sum, one) => sum + one, 0);

/** Returns the number of rejected records in an answer to an export. */
function rejectedIn({ bytes, isBinary }: Heard, name: string): number {
  const answer = isBinary
    ? decodeAnswer(bytes, name)
    : (JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>);
  const partial = (answer['partialSuccess'] ?? {}) as Record<string, unknown>;
  return Number(partial[name] ?? 0);
}

const MARKER = `JSONExtractString(attributes, 'marker')`;

test.each([
  ['OTLP logs', hostileLogs, 'rejectedLogRecords'],
  ['OTLP traces in the vocabularies of vendors', hostileSpans, 'rejectedSpans'],
] as const)(
  '%s: every accepted record is one row, and no request causes a 5xx',
  async (_, hostile, rejected) => {
    const account = await anAccount({ api });
    const sent = await run(hostile, account, (request, heard) =>
      heard.status === 200 ? [request.markers.length - rejectedIn(heard, rejected)] : [],
    );
    const total = sent.reduce((sum, one) => sum + one, 0);
    expect(total).toBeGreaterThan(CASES / 4);
    await expectOnce(account.org, MARKER, [], total);
  },
  LAND_MS_MAX * 2,
);

test(
  'OTLP metrics: nothing is stored, and no request causes a 5xx',
  async () => {
    const account = await anAccount({ api });
    const statuses = await run(hostileMetrics, account, (_, heard) => [heard.status]);
    expect([...new Set(statuses)].sort()).toEqual([200, 400]);
    expect(sumOf(await counted(account.org, 'span_id'))).toBe(0);
  },
  LAND_MS_MAX * 2,
);

test(
  'Langfuse ingestion: every accepted observation is one span, and no request causes a 5xx',
  async () => {
    const account = await anAccount({ api });
    const created = await run(hostileIngestion, account, (request, heard) => {
      if (heard.status !== 207) return [];
      const { successes } = JSON.parse(Buffer.from(heard.bytes).toString()) as { successes: { id: string }[] };
      const { batch } = JSON.parse(request.body.toString()) as {
        batch: { id: string; type: string; body: { id: string } }[];
      };
      const stored = new Set(successes.map(({ id }) => id));
      const isSpan = /^(?:span|generation|event|observation)-create$/;
      return batch.filter(({ id, type }) => isSpan.test(type) && stored.has(id)).map(({ body }) => body.id);
    });
    expect(created.length).toBeGreaterThan(CASES / 4);
    await expectOnce(account.org, 'span_id', [...new Set(created)], null);
  },
  LAND_MS_MAX * 2,
);

test(
  'LangSmith multipart: every accepted run is one span, and no request causes a 5xx',
  async () => {
    const account = await anAccount({ api });
    const runs = await run(hostileRuns, account, (request, heard) => {
      if (heard.status !== 202) return [];
      const text = request.body.toString();
      return request.markers.filter((id) => text.includes(`name="post.${id}`));
    });
    expect(runs.length).toBeGreaterThan(CASES / 20);
    await expectOnce(account.org, 'span_id', runs, null);
  },
  LAND_MS_MAX * 2,
);

test.each([
  ['OTLP logs', hostileLogs],
  ['OTLP traces', hostileSpans],
  ['Langfuse ingestion', hostileIngestion],
  ['LangSmith multipart', hostileRuns],
] as const)(
  '%s with damaged bytes: no request causes a 5xx, and what was accepted can be decoded',
  async (_, hostile) => {
    const account = await anAccount({ api });
    const statuses = await run(damaged(hostile), account, (__, heard) => [heard.status]);
    expect(Math.max(...statuses)).toBeGreaterThanOrEqual(400);
    expect(await deadLetters()).toBe(0);
  },
  LAND_MS_MAX * 2,
);
