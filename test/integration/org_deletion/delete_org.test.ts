// Deletes an organization with real APIs, real workers that the test kills, the real engine and a
// folder of objects. The organization has one of everything that the service stores. Afterwards no
// table, bucket, stream or object holds anything of it, its neighbour is unchanged, and its id can
// be used again.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketName, BUCKETS } from '../../../schemas/buckets.ts';
import { DEAD_LETTERS_STREAM, INGEST_STREAM, streamConfigs } from '../../../schemas/streams.ts';
import { JobRecords } from '../../../ops/exchange/job_records.ts';
import { OrgDeletions } from '../../../ops/exchange/org_deletions.ts';
import { orgTenantToken } from '../../../ops/platform/tenant_token.ts';
import { newLongJob } from '../../../schemas/records/job_record.ts';
import { DELETE_ORG, OPERATOR_JOBS, type OrgDeletion } from '../../../schemas/records/org_deletion.ts';
import { agentOrgToken } from '../../../schemas/records/agent.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { after, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, ORG, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { asOperator } from '../a_tenant.ts';
import { anEvent, type Data, data, fill, fillQueues, ingest, landed, list, makeOrg, ok } from './an_org.ts';

/** A name that appears in no other text of the service. */
const GONE = 'org_quagga';
/**
 * Begins with the name of the deleted organization: a deletion by prefix would delete this one too.
 */
const NEIGHBOUR = 'org_quagga2';
const folder = tempDir('org-deletion');

let service: TestService;
let upstream: TestUpstream;
let receiver: Receiver;
let api: TestApi;
let other: TestApi;

beforeAll(async () => {
  [upstream, receiver] = await Promise.all([startUpstream(), startReceiver()]);
  service = await TestService.start({
    api: { llmUrl: upstream.url },
    worker: {
      SERVICE_DATA_DIR: folder,
      SERVICE_OBJECT_STORE: `file://${folder}/objects`,
      SERVICE_TRACE_GRACE_MS: '50',
      SERVICE_LLM_BASE_URL: upstream.url,
    },
  });
  [api, other] = await Promise.all([service.startApi(), service.startApi()]);
}, 120_000);

afterAll(async () => {
  await service.close();
  await upstream.close();
  await receiver.close();
  removeDir(folder);
});

/** Returns the number of the organization's rows in every table that has a column org_id. */
async function rowsByTable(org: string): Promise<Record<string, number>> {
  const named = await service.database.run(
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree') AND name IN (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'org_id')",
  );
  const rows: Record<string, number> = {};
  for (const table of named.trim().split('\n'))
    rows[table] = Number(
      await service.database.run(
        `SELECT count() FROM ${table} WHERE org_id = '${org}' SETTINGS apply_deleted_mask = 0`,
      ),
    );
  return rows;
}

/** Patterns that find the organization's name in a subject, a key or a value. */
const namesOf = (org: string): RegExp[] => [
  new RegExp(`\\b${org}\\b`),
  new RegExp(`(^|[.])(${agentOrgToken(org)}|${orgTenantToken(org)})([.]|$)`),
];

/**
 * Streams and buckets that hold nothing of the test's organization before its deletion. Claims
 * expire within seconds, so their bucket may be empty too.
 */
const UNFILLED: readonly string[] = [
  // Facts of the service, not of an organization.
  'KV_jobs',
  'KV_login_tickets',
  'KV_org_deletions',
  'KV_partitions',
  'KV_repricings',
  'KV_service',
];

async function streamNames(): Promise<string[]> {
  const streams: string[] = [];
  for await (const stream of api.log.jsm.streams.names()) streams.push(stream);
  return streams;
}

/**
 * Returns, for each stream, the subjects of the messages that name the organization in the subject
 * or in the body. Deletion markers count.
 */
async function messagesOf(org: string): Promise<Record<string, string[]>> {
  const names = namesOf(org);
  const shows = (text: string): boolean => names.some((name) => name.test(text));
  const found: Record<string, string[]> = {};
  const streams = await streamNames();
  // The streams are exactly those that the service creates, so the loop below misses none.
  const known = [
    ...(Object.keys(BUCKETS) as BucketName[]).map((name) => `KV_${name}`),
    ...streamConfigs({ replicas: 1 }).map(({ name }) => name),
    INGEST_STREAM,
  ];
  expect(streams.toSorted()).toEqual(known.toSorted());
  for (const stream of streams) {
    const { state } = await api.log.jsm.streams.info(stream);
    for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
      const message = await api.log.jsm.streams.getMessage(stream, { seq });
      if (message === null || (!shows(message.subject) && !shows(Buffer.from(message.data).toString('latin1'))))
        continue;
      (found[stream] ??= []).push(message.subject);
    }
  }
  return found;
}

const objectsOf = (org: string): string[] =>
  readdirSync(path.join(folder, 'objects'), { recursive: true })
    .map(String)
    .filter((name) => name.includes(`org=${org}/`));

const remove = (org: string, through = api): Promise<Answer> =>
  call(through, 'DELETE', `/admin/orgs/${org}`, { headers: asOperator });
const jobOf = async (job_id: unknown): Promise<Data> =>
  data(await ok(call(other, 'GET', `/admin/jobs/${String(job_id)}`, { headers: asOperator })));
async function ended(job_id: unknown): Promise<Data> {
  let job: Data = {};
  await eventually(
    async () => {
      job = await jobOf(job_id);
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 180_000, what: 'the end of the deletion' },
  );
  return job;
}

test('deleting an organization erases all its data, even when workers are killed, and frees its id', async () => {
  upstream.behave(score(5));
  const gone = await makeOrg(api, GONE);
  const neighbour = await makeOrg(api, NEIGHBOUR);
  await fill(gone, receiver.url);
  await fill(neighbour, receiver.url);
  await service.killWorker();
  await fillQueues(gone);
  await fillQueues(neighbour);
  // Tables that only a running job fills, and tables added later, get a row with nothing but the
  // organization's id.
  for (const org of [GONE, NEIGHBOUR])
    for (const table of Object.keys(await rowsByTable(org)))
      await service.database.run(`INSERT INTO ${table} (org_id) VALUES ('${org}')`);
  expect(Object.entries(await rowsByTable(GONE)).filter(([, rows]) => rows === 0)).toEqual([]);
  // A stream or bucket that is added later must be filled above, or listed here with the reason why
  // it is empty.
  const filled = Object.keys(await messagesOf(GONE));
  expect(
    (await streamNames()).filter((name) => !filled.includes(name) && name !== 'KV_ingest_claims').toSorted(),
  ).toEqual(UNFILLED);
  expect(objectsOf(GONE).length).toBeGreaterThan(0);
  const neighbourRows = await rowsByTable(NEIGHBOUR);
  const readNeighbour = async (): Promise<unknown[]> => {
    const paths = [
      '/v1/traces/t-warm/tree',
      '/v1/traces/t-cold/tree',
      '/v1/judges',
      '/v1/datasets',
      '/v1/prompts',
      `/orgs/${NEIGHBOUR}/api-keys`,
    ];
    const answers = await Promise.all(paths.map((at) => ok(call(other, 'GET', at, { headers: neighbour.key }))));
    // The workers still meter the calls of the set-up: use of budgets grows while the test runs.
    const withoutUse = (name: string, value: unknown): unknown => (name === 'use' ? null : value);
    return answers.map((answer) => JSON.parse(JSON.stringify(data(answer)), withoutUse) as unknown);
  };
  const asBefore = await readNeighbour();

  // A model call is in flight when the client requests the deletion.
  upstream.behave(after(30_000, score(5)));
  const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
  const calling = call(other, 'POST', '/v1/chat/completions', { headers: gone.key, body: chat }).catch(
    (error: unknown) => error,
  );
  await eventually(() => upstream.open === 1, { what: 'the call' });

  const asked = await remove(GONE);
  expect([asked.status, data(asked)['kind'], data(asked)['status']]).toEqual([202, 'delete_org', 'queued']);
  const { job_id } = data(asked);
  await calling;
  // Every process rejects the organization's keys, members and id.
  for (const process of [api, other]) {
    await eventually(async () => (await ingest(gone, [anEvent('t-refused')], process)).status === 401, {
      what: 'its keys to be refused',
    });
    expect((await call(process, 'GET', '/v1/traces', { headers: gone.key })).status).toBe(401);
    expect((await call(process, 'GET', '/v1/traces', { headers: gone.owner })).status).toBe(403);
    expect(
      (await call(process, 'PATCH', `/admin/orgs/${GONE}`, { headers: asOperator, body: { name: 'x' } })).json,
    ).toMatchObject({
      code: 'org_not_found',
    });
    const made = await call(process, 'POST', '/admin/orgs', {
      headers: asOperator,
      body: { org_id: GONE, name: 'x', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } },
    });
    expect([made.status, made.json?.['code']]).toEqual([409, 'conflict']);
    const again = await remove(GONE, process);
    expect([again.status, data(again)['job_id']]).toEqual([202, job_id]);
  }

  // The test kills the worker twice in the middle of the deletion.
  for (const done of [1, 2]) {
    await service.startWorker();
    await eventually(async () => ((await jobOf(job_id))['progress'] as { done: number }).done >= done, {
      what: 'progress',
      withinMs: 120_000,
    });
    await service.killWorker();
  }
  expect((await jobOf(job_id))['status']).toBe('running');
  await service.startWorker();
  const job = await ended(job_id);
  expect(job).toMatchObject({ status: 'complete', error: null, result: { org_id: GONE, remaining: 0 } });

  expect(Object.entries(await rowsByTable(GONE)).filter(([, rows]) => rows > 0)).toEqual([]);
  expect(objectsOf(GONE)).toEqual([]);
  const left = await messagesOf(GONE);
  // The service keeps only the fact of the deletion and the id of its job.
  expect(left).toEqual({
    KV_org_deletions: [`$KV.org_deletions.${GONE}`],
    KV_job_records: [`$KV.job_records.=operator.${String(job_id)}`],
  });
  const audit = await service.database.run(
    `SELECT org_id, outcome, actor_type, target_id FROM audit_log FINAL WHERE action = 'org.delete' AND outcome = 'done' FORMAT TSV`,
  );
  expect(audit).toBe(`\tdone\toperator\t${GONE}\n`);

  // The neighbour still has all of its data.
  const now = await rowsByTable(NEIGHBOUR);
  // Merges and moves of texts change these counts by themselves.
  for (const table of ['spans', 'usage_events', 'incident_traces'])
    expect([table, Number(now[table]) >= Number(neighbourRows[table])]).toEqual([table, true]);
  expect(await readNeighbour()).toEqual(asBefore);
  await landed(neighbour, 't-late');
  expect(objectsOf(NEIGHBOUR).length).toBeGreaterThan(0);
  expect((await api.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages).toBe(1);

  // A new organization with the same id starts empty. An event that the deleted one had is new to
  // it.
  const anew = await makeOrg(api, GONE);
  for (const at of [
    '/v1/traces',
    '/v1/judges',
    '/v1/datasets',
    '/v1/prompts',
    '/v1/evals',
    '/v1/incidents',
    `/orgs/${GONE}/agents`,
    '/v1/jobs',
  ])
    expect([at, list(await call(api, 'GET', at, { headers: anew.key }))]).toEqual([at, []]);
  expect((await call(api, 'GET', '/v1/traces', { headers: gone.key })).status).toBe(401);
  expect(data(await call(other, 'GET', '/v1/budgets', { headers: anew.key }))).toMatchObject({
    tokens: { used: 0, hard_limit: null },
  });
  upstream.behave(score(5));
  // The usage of the deleted organization does not count: it was above this limit.
  await ok(
    call(api, 'PUT', `/orgs/${GONE}/budget`, {
      headers: anew.owner,
      body: { tokens: { soft_limit: 40, hard_limit: 50 } },
    }),
  );
  await ok(ingest(anew, [anEvent('t-warm')]));
  await landed(anew, 't-warm');
  expect(list(await call(api, 'GET', '/v1/traces', { headers: anew.key })).map(({ trace_id }) => trace_id)).toEqual([
    't-warm',
  ]);
}, 400_000);

test('the organization created at the start cannot be deleted, and an unknown one is not found', async () => {
  const refused = await remove(ORG);
  expect([refused.status, refused.json?.['code']]).toEqual([409, 'conflict']);
  expect(refused.json?.['detail']).toContain('SERVICE_BOOTSTRAP_ORG_ID');
  const unknown = await remove('org_that_is_not');
  expect([unknown.status, unknown.json?.['code']]).toEqual([404, 'org_not_found']);
  expect((await call(api, 'GET', '/admin/jobs/job_0000000000000000', { headers: asOperator })).json).toMatchObject({
    code: 'job_not_found',
  });
});

test('a deletion whose API process died before the job was stored is carried out, and one whose job failed begins again', async () => {
  // The first test leaves no running worker when it fails, and without one no deletion ends.
  await service.killWorker();
  await service.startWorker();
  const orphan = await makeOrg(api, 'org_bluebuck');
  const failed = await makeOrg(api, 'org_tarpan');
  const deletions = await OrgDeletions.open(api.log, () => undefined);
  const asked = (org_id: string, job_id: string): OrgDeletion => ({
    org_id,
    job_id,
    state: 'running',
    asked_at: new Date().toISOString(),
    asked_by: 'operator',
    request_id: 'req_test',
    completed_at: null,
  });
  try {
    // The job of this deletion ended as failed.
    const job = newLongJob({
      job_id: 'job_00000000000000f1',
      org_id: OPERATOR_JOBS,
      kind: DELETE_ORG,
      args: { org_id: failed.org },
      created_at: new Date().toISOString(),
    });
    const records = await JobRecords.open(api.log, () => undefined);
    await records.create({ ...job, status: 'failed', error: 'of the test', ended_at: new Date().toISOString() });
    records.close();
    await deletions.begin(asked(failed.org, job.job_id), () => false);
    await eventually(async () => (await ingest(failed, [anEvent('t')])).status === 401, {
      what: 'the org to be closed',
    });
    await eventually(async () => (await jobOf(job.job_id))['status'] === 'failed', { what: 'the job' });
    const again = await remove(failed.org);
    expect(again.status).toBe(202);
    expect(data(again)['job_id']).not.toBe(job.job_id);
    // The job of this deletion was never stored.
    await deletions.begin(asked(orphan.org, 'job_00000000000000f2'), () => false);
    expect(await ended(data(again)['job_id'])).toMatchObject({
      status: 'complete',
      result: { org_id: failed.org, remaining: 0 },
    });
    await eventually(
      async () => (await call(api, 'GET', '/admin/jobs/job_00000000000000f2', { headers: asOperator })).status === 200,
      {
        what: 'the job of the other org',
      },
    );
    expect(await ended('job_00000000000000f2')).toMatchObject({
      status: 'complete',
      result: { org_id: orphan.org, remaining: 0 },
    });
    for (const { org } of [orphan, failed]) expect((await remove(org)).json).toMatchObject({ code: 'org_not_found' });
  } finally {
    deletions.close();
  }
}, 300_000);
