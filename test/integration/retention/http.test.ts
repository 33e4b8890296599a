// Retention and cold storage as clients see them: a real API, a real worker, the real engine, and a
// folder of objects.
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator, type Caller } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';

const DAY_MS = 86_400_000;
const folder = tempDir('retention');
let service: TestService;
let api: TestApi;
let org = '';
let owner: Caller = {};
let key: Caller = {};

beforeAll(async () => {
  service = await TestService.start({
    worker: {
      SERVICE_DATA_DIR: folder,
      SERVICE_OBJECT_STORE: `file://${folder}/objects`,
      SERVICE_TRACE_GRACE_MS: '50',
    },
  });
  api = await service.startApi();
}, 90_000);
afterAll(async () => {
  await service.close();
  removeDir(folder);
});

beforeEach(async () => {
  ({ org, owner, key } = await anAccount({ api }));
});

const data = ({ json }: Answer): Record<string, unknown> => json?.['data'] as Record<string, unknown>;
const retain = (body: unknown, headers = owner): Promise<Answer> =>
  call(api, 'PUT', `/orgs/${org}/retention`, { headers, body });
const restore = (body: unknown, headers = owner): Promise<Answer> =>
  call(api, 'POST', `/orgs/${org}/cold-storage/restore`, { headers, body });
const retire = (days: number): Promise<Answer> =>
  call(api, 'POST', '/admin/jobs/retention/run', {
    headers: asOperator,
    body: { now: new Date(Date.now() + days * DAY_MS).toISOString() },
  });

async function jobEnds(asked: Answer): Promise<Record<string, unknown>> {
  expect(asked.status).toBe(202);
  const id = String(data(asked)['job_id']);
  let job: Record<string, unknown> = {};
  await eventually(
    async () => {
      job = data(await call(api, 'GET', `/v1/jobs/${id}`, { headers: owner }));
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 60_000, what: 'the end of the job' },
  );
  return job;
}

/** Ingests a model call and resolves with its trace once its text has landed. */
async function ingest(text: string): Promise<string> {
  const body = {
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: text }] },
    response: {
      id: 'x',
      model: 'gpt-4o',
      choices: [{ index: 0, message: { role: 'assistant', content: `answer to ${text}` }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
    },
    duration_ms: 10,
    outcome: 'success',
    attributes: { colour: 'red' },
  };
  const answer = await call(api, 'POST', `/orgs/${org}/ingest/chatcompletion`, { headers: key, body });
  const trace = String(data(answer)['trace_id']);
  await eventually(async () => (await span(trace))['response'] === `answer to ${text}`, { what: 'the text' });
  return trace;
}
async function span(trace: string): Promise<Record<string, unknown>> {
  const tree = await call(api, 'GET', `/v1/traces/${trace}/tree`, { headers: key });
  return ((data(tree)['spans'] ?? []) as Record<string, unknown>[])[0] ?? {};
}

describe('the policy', () => {
  it('the retention policy is the default until something is set, and accepts single fields', async () => {
    const before = await call(api, 'GET', `/orgs/${org}/retention`, { headers: owner });
    const defaults = {
      telemetry_events: { full_prompt_response_days: 30, metadata_only_days: 365, delete_after_days: null },
      judge_scores: { delete_after_days: null },
      usage_events: { delete_after_days: 2555 },
      audit_log: { delete_after_days: 2555 },
    };
    expect([before.status, data(before)]).toEqual([200, defaults]);
    expect(
      data(
        await retain({ telemetry_events: { full_prompt_response_days: 14 }, audit_log: { delete_after_days: null } }),
      ),
    ).toEqual({
      ...defaults,
      telemetry_events: { ...defaults.telemetry_events, full_prompt_response_days: 14 },
      audit_log: { delete_after_days: null },
    });
    expect(
      data(
        await retain({ telemetry_events: { full_prompt_response_days: null }, audit_log: { delete_after_days: 2555 } }),
      ),
    ).toEqual(defaults);
    expect(data(await call(api, 'GET', `/orgs/${org}/retention`, { headers: key }))).toEqual(defaults);
  });

  it.each([
    [{ telemetry_events: { full_prompt_response_days: 0 } }, 'telemetry_events.full_prompt_response_days'],
    [{ telemetry_events: { full_prompt_response_days: 1.5 } }, 'telemetry_events.full_prompt_response_days'],
    [{ telemetry_events: { full_prompt_response_days: '30' } }, 'telemetry_events.full_prompt_response_days'],
    [{ telemetry_events: { full_prompt_response_days: 366 } }, 'telemetry_events.metadata_only_days'],
    [{ telemetry_events: { delete_after_days: 364 } }, 'telemetry_events.delete_after_days'],
    [{ judge_scores: { delete_after_days: -1 } }, 'judge_scores.delete_after_days'],
    [{ judge_scores: { days: 1 } }, 'judge_scores.days'],
    [{ spans: {} }, 'spans'],
  ])('the retention policy rejects %j, naming the field', async (body, field) => {
    const refused = await retain(body);
    expect([refused.status, refused.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(refused.json?.['detail']).toContain(field);
  });

  it('only an owner changes the retention policy, and no key', async () => {
    expect((await retain({}, key)).status).toBe(403);
    expect((await restore({ since: '2026-01-01' }, key)).status).toBe(403);
  });
});

describe('the way of a text', () => {
  it('a text leaves for cold storage, returns on request and is read and found as before; the change of a policy can be taken back', async () => {
    const trace = await ingest('a question about zanzibar');
    const before = await span(trace);
    await retain({ telemetry_events: { full_prompt_response_days: 5 } });
    await retain({ telemetry_events: { full_prompt_response_days: 30 } });
    expect((await retire(20)).status).toBe(200);
    expect((await span(trace))['response']).toBe(before['response']);

    await retain({ telemetry_events: { full_prompt_response_days: 5 } });
    const run = await retire(20);
    expect(data(run)).toMatchObject({ job: 'retention', result: { texts_dropped: 1, days_exported: 1 } });
    const gone = await span(trace);
    expect([gone['prompt'], gone['response'], gone['input_tokens'], gone['cost_usd']]).toEqual([
      '',
      '',
      5,
      before['cost_usd'],
    ]);
    const today = new Date().toISOString().slice(0, 10);
    expect(readdirSync(path.join(folder, 'objects', `org=${org}`))).toEqual([
      expect.stringMatching(/^day=\d{4}-\d\d-\d\d\.parquet$/),
    ]);

    const nothing = await jobEnds(await restore({ since: '2001-01-01', until: '2001-02-01' }));
    expect(nothing).toMatchObject({
      kind: 'restore',
      status: 'complete',
      result: { days: 0, texts_restored: 0 },
      error: null,
    });
    await eventually(
      async () => {
        const log = await call(api, 'GET', `/orgs/${org}/audit-log?action=cold_storage.restore`, { headers: owner });
        const [record] = (log.json?.['data'] ?? []) as Record<string, unknown>[];
        return isDeepStrictEqual(record?.['changes'], { since: '2001-01-01', until: '2001-02-01', traces: null });
      },
      { what: 'the audit record with the dates that were asked for' },
    );
    const job = await jobEnds(await restore({ trace_ids: [trace], until: today }));
    expect(job).toMatchObject({
      status: 'complete',
      progress: { done: 1, total: 1 },
      result: { days: 1, texts_restored: 1, unknown_trace_ids: 0 },
    });
    expect([typeof job['started_at'], typeof job['ended_at']]).toEqual(['string', 'string']);
    expect(await span(trace)).toEqual(before);
    await eventually(
      async () => {
        const found = await call(api, 'GET', '/v1/spans/search?q=zanzibar', { headers: key });
        const hits = (found.json?.['data'] ?? []) as { trace_id: string }[];
        return isDeepStrictEqual(
          hits.map(({ trace_id }) => trace_id),
          [trace],
        );
      },
      { what: 'the restored text to be found' },
    );

    expect((await retire(21)).status).toBe(200);
    expect((await span(trace))['response']).toBe(before['response']);
    expect((await retire(26)).status).toBe(200);
    expect((await span(trace))['response']).toBe('');
  });

  it("a text is stamped with its organization's policy when it lands, as a hint for its partition", async () => {
    await retain({ telemetry_events: { full_prompt_response_days: 5 } });
    let tries = 0;
    await eventually(
      async () => {
        const trace = await ingest(`text number ${tries++}`);
        const row = await service.database.run(
          `SELECT drop_on - toDate(started_at) FROM (SELECT drop_on, started_at, trace_id FROM span_texts UNION ALL SELECT drop_on, started_at, trace_id FROM span_texts_recent) WHERE trace_id = '${trace}' LIMIT 1`,
        );
        // The smallest retention class, in days, that is at least the policy's.
        return row.trim() === '7';
      },
      { what: 'a text stamped by the new policy' },
    );
  });

  it('a missing object fails the restore and is named', async () => {
    const trace = await ingest('a lost question');
    await retain({ telemetry_events: { full_prompt_response_days: 1 } });
    expect((await retire(3)).status).toBe(200);
    rmSync(path.join(folder, 'objects', `org=${org}`), { recursive: true });
    const job = await jobEnds(await restore({ trace_ids: [trace] }));
    expect(job).toMatchObject({ status: 'failed', result: null });
    expect(job['error']).toMatch(new RegExp(`^org=${org}/day=.*parquet cannot be read .*there is no such object`));
    const jobs = await call(api, 'GET', '/v1/jobs?status=failed', { headers: key });
    expect((jobs.json?.['data'] as Record<string, unknown>[]).map(({ job_id }) => job_id)).toEqual([job['job_id']]);
  });

  it('a late event of a deleted trace begins it anew, without anything of what it was', async () => {
    const trace_id = await ingest('a question that is forgotten');
    const listed = async (): Promise<unknown[]> => {
      const { json } = await call(api, 'GET', '/v1/traces', { headers: key });
      const { total } = json?.['meta'] as { total: number };
      return [
        total,
        ...(json?.['data'] as Record<string, unknown>[]).map(({ root_span_name, span_count }) => [
          root_span_name,
          span_count,
        ]),
      ];
    };
    await eventually(async () => isDeepStrictEqual(await listed(), [1, ['gpt-4o', 1]]));
    await retain({ telemetry_events: { full_prompt_response_days: 1, metadata_only_days: 1, delete_after_days: 1 } });
    expect((await retire(2)).status).toBe(200);
    expect(await listed()).toEqual([0]);
    const late = { events: [{ name: 'late', trace_id, outcome: 'success', duration_ms: 1 }] };
    expect((await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: key, body: late })).status).toBe(200);
    await eventually(async () => (await listed()).length === 2);
    expect(await listed()).toEqual([1, ['late', 1]]);
  });

  it("the use of a budget is kept until its period is over, by the current policy's period", async () => {
    const policy = (body: unknown) => call(api, 'PUT', `/orgs/${org}/policy`, { headers: owner, body });
    const used = async (): Promise<unknown> =>
      (data(await call(api, 'GET', '/v1/budgets', { headers: key }))['tokens'] as { used: number }).used;
    expect((await retain({ usage_events: { delete_after_days: 1 } })).status).toBe(200);
    // A fiscal year that begins this month does not end within 40 days.
    expect(
      (await policy({ period: 'fiscal_year', fiscal_year_start_month: new Date().getUTCMonth() + 1 })).status,
    ).toBe(200);
    const attributes = { span_kind: 'llm', model: 'gpt-4o', input_tokens: 70, output_tokens: 0 };
    const event = { name: 'call', outcome: 'success', duration_ms: 1, attributes };
    expect((await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: key, body: event })).status).toBe(200);
    await eventually(async () => (await used()) === 70, { what: 'the usage' });
    expect((await retire(40)).status).toBe(200);
    expect(await used()).toBe(70);
    expect((await policy({ period: 'month' })).status).toBe(200);
    expect((await retire(40)).status).toBe(200);
    expect(await used()).toBe(0);
  });

  it('a job is visible to its own organization only', async () => {
    const job = data(await restore({ since: '2020-01-01', until: '2020-01-02' }));
    const other = await call(api, 'GET', `/v1/jobs/${String(job['job_id'])}`);
    expect([other.status, other.json?.['code']]).toEqual([404, 'job_not_found']);
    for (const id of ['job_0123456789abcdef', 'x', '..', 'a%20b'])
      expect((await call(api, 'GET', `/v1/jobs/${id}`, { headers: owner })).status).toBe(404);
  });
});

it.each([
  [{}, 'since'],
  [{ since: 'yesterday' }, 'since'],
  [{ since: '2026-02-02', until: '2026-02-01' }, 'until'],
  [{ trace_ids: [] }, 'trace_ids'],
  [{ trace_ids: ['a b'] }, 'trace_ids[0]'],
  [{ since: '2026-02-02', days: 3 }, 'days'],
])('a restore of %j is rejected, naming the field', async (body, field) => {
  const refused = await restore(body);
  expect([refused.status, refused.json?.['code']]).toEqual([422, 'invalid_request']);
  expect(refused.json?.['detail']).toContain(field);
});
