// The service with two shards of ClickHouse: reads over both, a shard that is away, and shards that other
// processes name otherwise.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { partitionOf } from '../../pipeline/domain/traces/ids.ts';
import { Stack, SMALL } from '../chaos/stack.ts';
import { eventually } from '../support/wait.ts';

const TRACES = 24;
const SPANS = 2;
const LANDED_MS_MAX = 60_000;

const stack = new Stack({ ...SMALL, workers: 2, shards: 2 });
const { org } = stack.address;

beforeAll(() => stack.start(), 120_000);
afterAll(() => stack.stop(), 60_000);

interface Answer {
  status: number;
  data: unknown;
  meta: { total?: number; partial?: boolean };
}

async function call(path: string, body?: unknown): Promise<Answer> {
  const { url, key } = stack.address;
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${key}`, 'x-org-id': org, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return { data: null, meta: {}, ...((await response.json()) as Partial<Answer>), status: response.status };
}

const traceIds = (run: string): string[] => Array.from({ length: TRACES }, (_, at) => `${run}-${at}`);
/** Reads of one trace, and what the answer of each contains. */
const TRACE_READS: readonly (readonly [read: string, contains: (trace_id: string) => string])[] = [
  ['', (trace_id) => trace_id],
  ['/tree', (trace_id) => `${trace_id}-call`],
  ['/timeline', () => '"name":"answer"'],
  ['/outline', () => '"answer"'],
  ['/conversation', (trace_id) => `reply to ${trace_id}`],
];
/** Shard of a trace in a stack with 8 partitions, from 0. */
const shardOf = (trace_id: string): number => Math.floor(partitionOf(org, trace_id, 8) / 4);

/** Sends a tool call and a model call for each trace of a run. */
async function send(run: string): Promise<void> {
  const event = (name: string, trace_id: string, attributes: Record<string, unknown>) => ({
    name,
    outcome: 'success',
    duration_ms: 5,
    trace_id,
    agent_id: `agent_${run}`,
    session_id: `session-${run}`,
    attributes,
  });
  const events = traceIds(run).flatMap((trace_id) => [
    event('look', trace_id, { span_id: `${trace_id}-tool` }),
    event('answer', trace_id, {
      span_id: `${trace_id}-call`,
      parent_span_id: `${trace_id}-tool`,
      span_kind: 'llm',
      model: 'gpt-4o',
      input_tokens: 10,
      output_tokens: 5,
      prompt: `question of the ${run}`,
      response: `reply to ${trace_id}`,
    }),
  ]);
  const { status, data } = await call(`/orgs/${org}/ingest/custom`, { events });
  expect([status, data]).toEqual([200, expect.anything()]);
}

const listOf = (run: string): Promise<Answer> => call(`/v1/traces?agent_id=agent_${run}&limit=100`);
const idsOf = ({ data }: Answer): string[] =>
  (data as { trace_id: string }[]).map(({ trace_id }) => trace_id).toSorted();

const landed = (run: string): Promise<unknown> =>
  eventually(
    async () => {
      const { status, data, meta } = await listOf(run);
      return status === 200 && meta.partial !== true && (data as unknown[]).length === TRACES;
    },
    { withinMs: LANDED_MS_MAX, what: `traces of ${run}` },
  );

describe('two shards', () => {
  it('has traces in both', async () => {
    expect(new Set(traceIds('first').map(shardOf))).toEqual(new Set([0, 1]));
    await send('first');
    await landed('first');
    expect(idsOf(await listOf('first'))).toEqual(traceIds('first').toSorted());
  });

  it('reads a trace of either shard', async () => {
    for (const trace_id of traceIds('first').slice(0, 6))
      for (const [read, contains] of TRACE_READS) {
        const { status, data } = await call(`/v1/traces/${trace_id}${read}`);
        expect([read, status, JSON.stringify(data).includes(contains(trace_id))]).toEqual([read, 200, true]);
      }
  });

  it('adds the shards up', async () => {
    const [list, facets, counted, session] = await Promise.all([
      call('/v1/traces?agent_id=agent_first&limit=1'),
      call('/v1/traces/facets?agent_id=agent_first&fields=agent_id'),
      call('/v1/analytics/query', {
        view: 'spans',
        measures: [{ measure: 'count' }],
        filters: [{ field: 'agent_id', value: 'agent_first' }],
        since: new Date(Date.now() - 3_600_000).toISOString(),
      }),
      call('/v1/sessions/session-first'),
    ]);
    expect([list.status, list.meta.total]).toEqual([200, TRACES]);
    expect([facets.status, facets.meta.total]).toEqual([200, TRACES]);
    expect([counted.status, JSON.stringify(counted.data)]).toEqual([
      200,
      expect.stringContaining(String(TRACES * SPANS)),
    ]);
    expect(session.status).toBe(200);
  });

  it('searches both', async () => {
    await eventually(
      async () => {
        const { data } = await call('/v1/spans/search?q=first&limit=100');
        return Array.isArray(data) && data.length === TRACES;
      },
      { withinMs: LANDED_MS_MAX, what: 'texts of both shards' },
    );
  });
});

it('analysts of an organization read both, and the views that add up rows once', async () => {
  const { url, adminToken } = stack.address;
  const made = await fetch(`${url}/admin/orgs/${org}/analysts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'first' }),
  });
  const { data } = (await made.json()) as { data: { user: string; password: string } };
  const read = async (sql: string): Promise<string> => {
    const headers = { 'X-ClickHouse-User': data.user, 'X-ClickHouse-Key': data.password };
    return (await fetch(url, { method: 'POST', headers, body: sql })).text();
  };
  expect(await read("SELECT count() FROM analyst_spans WHERE agent_id = 'agent_first'")).toBe(`${TRACES * SPANS}\n`);
  expect(
    await read("SELECT count() - uniqExact(day), sum(spans) FROM analyst_costs_daily WHERE model = 'gpt-4o'"),
  ).toBe(`0\t${TRACES}\n`);
}, 60_000);

const SECOND = 'clickhouse-2';

describe('a shard that is away', () => {
  it('leaves its traces out and says so, and lands its events when it is back', async () => {
    await stack.kill(SECOND);
    const here = traceIds('first').filter((trace_id) => shardOf(trace_id) === 0);
    const list = await listOf('first');
    expect([list.status, list.meta.partial, idsOf(list)]).toEqual([200, true, here.toSorted()]);
    const there = traceIds('first').find((trace_id) => shardOf(trace_id) === 1) ?? '';
    // A trace is read from its shard alone.
    for (const [read] of TRACE_READS) {
      const { status, meta } = await call(`/v1/traces/${here[0] ?? ''}${read}`);
      // An outline has the scores of its trace too, of which a shard may have some.
      expect([read, status, meta.partial]).toEqual([read, 200, read === '/outline' ? true : undefined]);
      expect([read, (await call(`/v1/traces/${there}${read}`)).status]).toEqual([read, 502]);
    }
    await send('second');
    const ofFirst = traceIds('second').filter((trace_id) => shardOf(trace_id) === 0);
    await eventually(async () => idsOf(await listOf('second')).length === ofFirst.length, {
      withinMs: LANDED_MS_MAX,
      what: 'traces of the shard that is there',
    });
    expect(idsOf(await listOf('second'))).toEqual(ofFirst.toSorted());
    await stack.boot(SECOND);
    await landed('second');
    await landed('first');
    expect((await call(`/v1/traces/${there}/tree`)).status).toBe(200);
  }, 180_000);

  it('may be the first one, through which reads begin', async () => {
    await stack.kill('clickhouse-1');
    await send('third');
    const list = await listOf('first');
    const there = traceIds('first').filter((trace_id) => shardOf(trace_id) === 1);
    expect([list.status, list.meta.partial, idsOf(list)]).toEqual([200, true, there.toSorted()]);
    await stack.boot('clickhouse-1');
    await landed('third');
  }, 180_000);

  it('stops no partitions of the other one when a worker joins and another one is killed', async () => {
    await stack.kill('worker-2');
    await send('fourth');
    await landed('fourth');
    await stack.kill(SECOND);
    await stack.boot('worker-2');
    const here = (run: string): string[] => traceIds(run).filter((trace_id) => shardOf(trace_id) === 0);
    for (const run of ['fifth', 'sixth']) {
      await send(run);
      await eventually(async () => idsOf(await listOf(run)).length === here(run).length, {
        withinMs: LANDED_MS_MAX,
        what: `traces of ${run} in the shard that is there`,
      });
      await stack.kill('worker-1');
    }
    await stack.bootAll();
    for (const run of ['fifth', 'sixth']) await landed(run);
  }, 240_000);

  it.each(['clickhouse-1', 'clickhouse-2'] as const)(
    'that hangs delays reads by seconds, not for ever: %s',
    async (shard) => {
      await listOf('first');
      stack.pause(shard);
      try {
        await eventually(
          async () => {
            const { status, meta } = await listOf('first');
            return status === 200 && meta.partial === true;
          },
          { withinMs: 60_000, what: 'an answer without the shard that hangs' },
        );
      } finally {
        stack.resume(shard);
      }
      await landed('first');
    },
    180_000,
  );
});
