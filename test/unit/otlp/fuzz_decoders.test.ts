// The decoders of every protocol of the intake, fed with generated requests: whatever a request holds, it
// is refused with an error that has a detail, or every accepted record becomes exactly one span. The
// requests are those of test/integration/otlp/fuzz.test.ts. FUZZ_CASES=10000 makes as many for each.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { MalformedBody } from '../../../api/http/body.ts';
import type { OrgCredential } from '../../../api/http/credential.ts';
import { ApiError } from '../../../api/http/errors.ts';
import type { CompatRequest, Protocol } from '../../../api/intake/compat/handler.ts';
import { spanEvent } from '../../../api/intake/compat/events.ts';
import { readExport } from '../../../api/intake/otlp/events.ts';
import type { Signal } from '../../../api/intake/otlp/signals.ts';
import { ingestionProtocol } from '../../../api/intake/langfuse/ingestion.ts';
import { langsmithProtocols } from '../../../api/intake/langsmith/ingest.ts';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { foldLegacy } from '../../../pipeline/domain/langfuse/fold.ts';
import { foldRuns } from '../../../pipeline/domain/langsmith/runs.ts';
import type { IngestEvent, UserScore } from '../../../schemas/codec.ts';
import type { LangfuseMessage } from '../../../schemas/records/langfuse.ts';
import {
  damaged,
  type Hostile,
  hostileIngestion,
  hostileLogs,
  hostileMetrics,
  type HostileRequest,
  hostileRuns,
  hostileSpans,
} from '../../integration/otlp/hostile_telemetry.ts';
import { hostileEvaluations, hostileScores } from '../../integration/otlp/hostile_scores.ts';
import { prices } from './decoding.ts';

const RUNS = Number(process.env['FUZZ_CASES'] ?? 500);
const PARTITIONS = 8;
const ORG = 'org_fuzz';
const CREDENTIAL: OrgCredential = {
  kind: 'api_key',
  org_id: ORG,
  key_id: 'key_1',
  scopes: ['*'],
} as unknown as OrgCredential;
const DEPS = { prices, maxPromptTokens: () => null, redactorOf: () => null };

/** Calls `check` with RUNS requests; numbers make their markers differ. */
async function forEach(hostile: fc.Arbitrary<Hostile>, check: (request: HostileRequest) => unknown): Promise<void> {
  let index = 0;
  await fc.assert(
    fc.asyncProperty(hostile, async (make) => {
      await check(make(index++));
    }),
    { numRuns: RUNS },
  );
}

/** Decodes an event of the log, and returns the id of its span. */
function spanIdIn(event: IngestEvent): string {
  const spans = spansOf(DEPS, event, JSON.parse(event.body));
  if (typeof spans === 'string') throw new Error(`an accepted event cannot be decoded: ${spans}\n${event.body}`);
  expect(spans).toHaveLength(1);
  JSON.stringify(spans[0]?.attributes);
  return spans[0]?.span_id ?? '';
}

/** Returns what `read` returns; null if it refuses the request with an error of the API that has a detail. */
function unlessRefused<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) expect(error.detail).toMatch(/\w/);
    else if (!(error instanceof z.ZodError || error instanceof MalformedBody)) throw error;
    return null;
  }
}

function exported({ path, type, body }: HostileRequest): ReturnType<typeof readExport> | null {
  const signal = path.split('/').at(-1) as Signal;
  const encoding = type.includes('json') ? 'json' : 'protobuf';
  const source = { signal, encoding, org_id: ORG, received_at: Date.now(), partitions: PARTITIONS } as const;
  return unlessRefused(() => readExport(body, { ...source, grow: () => null }));
}

describe('OTLP', () => {
  test.each([
    ['logs', hostileLogs],
    ['traces', hostileSpans],
  ])('%s: a record is rejected and counted, or decoded as one span', async (_, hostile) => {
    await forEach(hostile, (request) => {
      const read = exported(request);
      if (read === null) return;
      expect(read.events.length + read.rejected).toBe(request.markers.length);
      for (const { event } of read.events) spanIdIn(event);
    });
  });

  test.each([
    ['logs', damaged(hostileLogs)],
    ['traces', damaged(hostileSpans)],
    ['evaluation results', damaged(hostileEvaluations)],
    ['metrics', hostileMetrics],
  ])('%s with damaged bytes: what is accepted can be decoded', async (_, hostile) => {
    await forEach(hostile, (request) => {
      for (const { event } of exported(request)?.events ?? []) spanIdIn(event);
    });
  });

  test('evaluation results: each one with a name and a value is found once', async () => {
    await forEach(hostileEvaluations, (request) => {
      const found = exported(request)?.evaluations.map(({ result }) => result.comment.split(': ').at(-1));
      expect(found).toEqual(request.markers);
    });
  });
});

interface Stored {
  status: number;
  json: unknown;
  events: IngestEvent[];
  parts: LangfuseMessage[];
  scores: UserScore[];
}

/** Runs a request through a protocol that stores in memory; null if it is refused. */
async function stored(
  protocolOf: (deps: Parameters<typeof ingestionProtocol>[0]) => Protocol | undefined,
  { body, type }: HostileRequest,
): Promise<Stored | null> {
  const [parts, scores]: [LangfuseMessage[], UserScore[]] = [[], []];
  const protocol = protocolOf({
    partitions: PARTITIONS,
    queuePending: (score) => Promise.resolve(void scores.push(score)),
    queueParts: (message) => Promise.resolve(void parts.push(message)),
  });
  const request: CompatRequest = {
    credential: CREDENTIAL,
    id: '',
    contentType: type,
    body,
    received_at: Date.now(),
    backfill: false,
    grow: () => null,
  };
  const reading = unlessRefused(() => protocol?.read(request));
  if (reading == null) return null;
  const { status, json } = await reading.finish();
  return { status, json, events: reading.events.map(({ event }) => event), parts, scores };
}

/** Returns the ids of the spans that a worker makes of stored parts. */
function foldedIds(parts: readonly LangfuseMessage[], fold: 'legacy' | 'runs'): string[] {
  return parts.flatMap(({ trace_id, items }) => {
    const folded = fold === 'legacy' ? foldLegacy(trace_id, items, new Set()) : foldRuns(items, new Set());
    return folded.map(({ span, received_at }) => {
      const made = spanEvent(span, { org_id: ORG, received_at, partitions: PARTITIONS, scope: 'fuzz' });
      if (!made.ok) throw new Error(`an accepted part makes no span: ${made.message}\n${JSON.stringify(items)}`);
      return spanIdIn(made.event.event);
    });
  });
}

const ingestion = (request: HostileRequest) => stored(ingestionProtocol, request);
const multipart = (request: HostileRequest) => stored((deps) => langsmithProtocols(deps)[0], request);

describe('Langfuse ingestion', () => {
  test('an item fails alone with a reason, and every accepted observation becomes one span', async () => {
    await forEach(hostileIngestion, async (request) => {
      const found = await ingestion(request);
      if (found === null) return;
      const { successes, errors } = found.json as { successes: { id: string }[]; errors: { id: string }[] };
      const { batch } = JSON.parse(request.body.toString()) as {
        batch: { id: string; type: string; body: { id: string } }[];
      };
      expect([...successes, ...errors].map(({ id }) => id).sort()).toEqual(batch.map(({ id }) => id).sort());
      const kept = new Set(successes.map(({ id }) => id));
      const isObservation = /^(?:span|generation|event|observation)-create$/;
      const created = batch.filter(({ id, type }) => isObservation.test(type) && kept.has(id));
      const ids = foldedIds(found.parts, 'legacy');
      expect(new Set(ids).size).toBe(ids.length);
      for (const { body } of created) expect(ids).toContain(body.id);
    });
  });

  test.each([
    ['observations', damaged(hostileIngestion)],
    ['scores', damaged(hostileScores)],
  ])('%s with damaged bytes: what is accepted can be folded and decoded', async (_, hostile) => {
    await forEach(hostile, async (request) => {
      const found = await ingestion(request);
      if (found !== null) foldedIds(found.parts, 'legacy');
    });
  });
});

describe('LangSmith multipart', () => {
  test('a request is refused whole, or every run in it becomes one span', async () => {
    await forEach(hostileRuns, async (request) => {
      const found = await multipart(request);
      if (found === null) return;
      const ids = [...found.events.map(spanIdIn), ...foldedIds(found.parts, 'runs')];
      expect(new Set(ids).size).toBe(ids.length);
      const text = request.body.toString();
      for (const id of request.markers) if (text.includes(`name="post.${id}`)) expect(ids).toContain(id);
    });
  });

  test('with damaged bytes: what is accepted can be folded and decoded', async () => {
    await forEach(damaged(hostileRuns), async (request) => {
      const found = await multipart(request);
      if (found === null) return;
      found.events.map(spanIdIn);
      foldedIds(found.parts, 'runs');
    });
  });
});
