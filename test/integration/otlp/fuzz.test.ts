// Hostile telemetry against a real service, for each protocol of the intake besides ingest: no request
// causes a 5xx, every record that was accepted has exactly one row, and none became a dead letter.
// FUZZ_CASES=10000 sends as many requests to each protocol. The seed is fixed.
import fc from 'fast-check';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEAD_LETTERS_STREAM } from '../../../schemas/streams.ts';
import { decodeAnswer } from '../../support/otlp.ts';
import { eventually } from '../../support/wait.ts';
import { type Account, anAccount } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';
import type { TestApi } from '../api/an_api.ts';
import { aTrace, hostileEvaluations, hostilePrompts, hostileScores, listOfPrompts } from './hostile_scores.ts';
import {
  damaged,
  grpcOf,
  type Hostile,
  hostileIngestion,
  hostileLogs,
  hostileMetrics,
  type HostileRequest,
  hostileRuns,
  hostileSpans,
  protobufLogs,
  protobufSpans,
} from './hostile_telemetry.ts';

const SEED = 20_261_124;
const CASES = Number(process.env['FUZZ_CASES'] ?? 250);
const LANES = 8;
/** Time for which a busy service is asked again, and the time for everything to land, in ms. */
const BUSY_MS_MAX = 60_000;
const LAND_MS_MAX = 60_000 + CASES * 60;

let service: TestService;
let api: TestApi;
let session: ClientHttp2Session;

beforeAll(async () => {
  service = await TestService.start({
    worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_LANGFUSE_OPEN_MS: '2000' },
    api: { grpc: true },
  });
  api = await service.startApi();
  session = connect(`http://127.0.0.1:${api.grpcPort}`);
}, 120_000);
afterAll(async () => {
  session.close();
  await service.close();
});

interface Heard {
  status: number;
  bytes: Uint8Array;
  isBinary: boolean;
}

type Sender = (request: HostileRequest, account: Account) => Promise<Heard>;

/** Sends a request again while the answer says that the service is busy, as clients do. */
async function send(request: HostileRequest, account: Account, once: Sender): Promise<Heard> {
  const deadline = performance.now() + BUSY_MS_MAX;
  for (;;) {
    const heard = await once(request, account);
    if ((heard.status !== 429 && heard.status !== 502) || performance.now() > deadline) return heard;
    await sleep(200);
  }
}

const keyOf = ({ key }: Account): string => String(key['X-Org-Api-Key']);

const overHttp: Sender = async ({ path, type, body, method = 'POST' }, account) => {
  const headers = { 'X-Org-Api-Key': keyOf(account), 'Content-Type': type };
  const sent = method === 'GET' ? {} : { body: new Uint8Array(body) };
  const response = await fetch(api.url + path, { method, headers, ...sent });
  return {
    status: response.status,
    bytes: new Uint8Array(await response.arrayBuffer()),
    isBinary: response.headers.get('content-type') === 'application/x-protobuf',
  };
};

/** HTTP status for each status of gRPC that the service may answer with; every other one is a failure. */
const STATUS_OF_GRPC: Readonly<Record<string, number>> = { 0: 200, 3: 400, 8: 429, 12: 415, 14: 502 };
const PREFIX_BYTES = 5;

const overGrpc: Sender = async ({ path, body }, account) => {
  // The server closes a connection on which nothing happens for a while; clients of gRPC connect again.
  if (session.closed || session.destroyed) session = connect(`http://127.0.0.1:${api.grpcPort}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${keyOf(account)}`,
  });
  const chunks: Buffer[] = [];
  let trailers: IncomingHttpHeaders = {};
  stream.on('response', (given) => (trailers = given));
  stream.on('trailers', (given) => (trailers = given));
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.end(body);
  await new Promise((resolve) => stream.on('error', () => undefined).once('close', resolve));
  const status = STATUS_OF_GRPC[String(trailers['grpc-status'])] ?? 500;
  return { status, bytes: Buffer.concat(chunks).subarray(PREFIX_BYTES), isBinary: true };
};

/** Sends CASES requests. Resolves with what `accepted` returned for each, and with the failures. */
async function run<T>(
  hostile: fc.Arbitrary<Hostile>,
  account: Account,
  accepted: (request: HostileRequest, heard: Heard) => T[],
  once: Sender = overHttp,
): Promise<T[]> {
  const cases = fc.sample(hostile, { seed: SEED, numRuns: CASES });
  const queue = cases.entries();
  const kept: T[] = [];
  const failures: string[] = [];
  const lane = async (): Promise<void> => {
    for (const [index, make] of queue) {
      const request = make(index);
      const heard = await send(request, account, once);
      const said = Buffer.from(heard.bytes).toString();
      // 501 is the answer to a path of Langfuse that does not exist, such as one with an empty name.
      if ((heard.status >= 500 && heard.status !== 501) || heard.status < 200)
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

/** Waits until every comment has its score, and expects each to have one. */
async function expectScores(org: string, comments: readonly string[]): Promise<void> {
  const found = async (): Promise<string[]> => {
    const sql = `SELECT comment FROM user_scores FINAL WHERE org_id = '${org}' FORMAT JSONEachRow`;
    const lines = (await service.database.run(sql)).split('\n').filter((line) => line !== '');
    return lines.map((line) => (JSON.parse(line) as { comment: string }).comment.split(': ').at(-1) ?? '').sort();
  };
  let scores: string[] = [];
  await eventually(
    async () => {
      scores = await found();
      return scores.length >= comments.length;
    },
    { withinMs: LAND_MS_MAX, what: `${comments.length} scores` },
  ).catch((cause: unknown) => {
    throw new Error(`missing: ${comments.filter((one) => !scores.includes(one)).join(' ')}`.slice(0, 2000), { cause });
  });
  expect(scores).toEqual(comments.toSorted());
  expect(await deadLetters()).toBe(0);
}

/** Returns the number of rejected records in an answer to an export. */
function rejectedIn({ bytes, isBinary }: Heard, name: string): number {
  const answer = isBinary
    ? decodeAnswer(bytes, name)
    : (JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>);
  const partial = (answer['partialSuccess'] ?? {}) as Record<string, unknown>;
  return Number(partial[name] ?? 0);
}

const TRACES = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
const LOGS = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';
const METRICS = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';

const MARKER = `JSONExtractString(attributes, 'marker')`;

test.each([
  ['OTLP logs', hostileLogs, 'rejectedLogRecords', overHttp],
  ['OTLP traces in the vocabularies of vendors', hostileSpans, 'rejectedSpans', overHttp],
  ['OTLP logs over gRPC', grpcOf(protobufLogs, LOGS), 'rejectedLogRecords', overGrpc],
  ['OTLP traces over gRPC', grpcOf(protobufSpans, TRACES), 'rejectedSpans', overGrpc],
] as const)(
  '%s: every accepted record is one row, and no request causes a 5xx',
  async (_, hostile, rejected, once) => {
    const account = await anAccount({ api });
    const sent = await run(
      hostile,
      account,
      (request, heard) => (heard.status === 200 ? [request.markers.length - rejectedIn(heard, rejected)] : []),
      once,
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

test(
  'Evaluation results: each one with a name and a value is one score, also when it is sent twice',
  async () => {
    const account = await anAccount({ api });
    const accepted = (request: HostileRequest, heard: Heard): string[] => {
      if (heard.status === 200) expect(Buffer.from(heard.bytes).toString()).not.toContain('rejected');
      return heard.status === 200 ? request.markers : [];
    };
    const given = await run(hostileEvaluations, account, accepted);
    const again = await run(hostileEvaluations, account, accepted);
    expect(again.length).toBe(given.length);
    expect(given.length).toBeGreaterThan(CASES / 4);
    await expectScores(account.org, given);
  },
  LAND_MS_MAX * 2,
);

test(
  'Scores of Langfuse and feedback of LangSmith: each one that was accepted is one score, and no request causes a 5xx',
  async () => {
    const account = await anAccount({ api });
    await overHttp(aTrace(), account);
    const accepted = await run(hostileScores, account, (request, heard) => {
      if (heard.status === 207) {
        const said = JSON.parse(Buffer.from(heard.bytes).toString()) as { successes?: unknown[]; accepted?: number };
        return (said.successes?.length ?? said.accepted) === 1 ? request.markers : [];
      }
      return heard.status < 300 ? request.markers : [];
    });
    expect(accepted.length).toBeGreaterThan(CASES / 20);
    await expectScores(account.org, accepted);
  },
  LAND_MS_MAX * 2,
);

test(
  'Prompts of Langfuse: each one that was created is there, and no request causes a 5xx',
  async () => {
    const account = await anAccount({ api });
    const created = await run(hostilePrompts, account, (request, heard) =>
      request.method === 'POST' && heard.status < 300 ? request.markers : [],
    );
    expect(created.length).toBeGreaterThan(CASES / 20);
    const versions: unknown[] = [];
    for (let page = 1, pages = 1; page <= pages; page++) {
      const { bytes } = await overHttp(listOfPrompts(page), account);
      const { data, meta } = JSON.parse(Buffer.from(bytes).toString()) as {
        data: { versions: number[] }[];
        meta: { totalPages: number };
      };
      versions.push(...data.flatMap((prompt) => prompt.versions));
      pages = meta.totalPages;
    }
    expect(versions).toHaveLength(created.length);
  },
  LAND_MS_MAX * 2,
);

test.each([
  ['OTLP logs', hostileLogs, overHttp],
  ['OTLP traces', hostileSpans, overHttp],
  ['Langfuse ingestion', hostileIngestion, overHttp],
  ['LangSmith multipart', hostileRuns, overHttp],
  ['OTLP logs over gRPC', grpcOf(protobufLogs, LOGS), overGrpc],
  ['OTLP traces over gRPC', grpcOf(protobufSpans, TRACES), overGrpc],
  ['OTLP metrics over gRPC', grpcOf(protobufLogs, METRICS), overGrpc],
] as const)(
  '%s with damaged bytes: no request causes a 5xx, and what was accepted can be decoded',
  async (_, hostile, once) => {
    const account = await anAccount({ api });
    const statuses = await run(damaged(hostile), account, (__, heard) => [heard.status], once);
    expect(Math.max(...statuses)).toBeGreaterThanOrEqual(400);
    expect(await deadLetters()).toBe(0);
  },
  LAND_MS_MAX * 2,
);
