// `npm start` from the user's side: the first start, the line that it prints, later starts,
// draining, and the state after kill -9.
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startOf } from '../../ops/launch/process/identity.ts';
import { type ChildName, type TestService, runStart, serviceDir, startService } from '../support/service.ts';
import { eventually } from '../support/wait.ts';

const CHILDREN: readonly ChildName[] = ['api', 'pipeline', 'nats', 'clickhouse'];
const shell = promisify(execFile);

const answerShape = z.object({ data: z.object({ trace_id: z.string() }) });
const tracesShape = z.object({
  data: z.array(z.object({ trace_id: z.string(), root_span_name: z.string(), input_tokens: z.number() })),
});

const lineOf = (service: TestService, part: string): string =>
  service
    .stdout()
    .split('\n')
    .find((line) => line.includes('curl ') && line.includes(part))
    ?.trim() ?? '';
const run = async (line: string): Promise<unknown> => JSON.parse((await shell('/bin/sh', ['-c', line])).stdout);

async function traceIds(service: TestService): Promise<string[]> {
  const res = await fetch(`${service.baseUrl}/v1/traces`, {
    headers: { authorization: `Bearer ${service.secrets.api_key}`, 'x-org-id': service.orgId },
  });
  return tracesShape.parse(await res.json()).data.map(({ trace_id }) => trace_id);
}

const viewsShape = z.object({ data: z.array(z.object({ view_id: z.string() })) });

/** Calls /v1/views with the key of the service; with a body it makes a view. */
async function views(service: TestService, body?: object): Promise<unknown> {
  const res = await fetch(`${service.baseUrl}/v1/views`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${service.secrets.api_key}`,
      'x-org-id': service.orgId,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return res.json();
}

async function saveView(service: TestService): Promise<string> {
  const made = await views(service, { name: 'Failed', page: 'traces', query: 'outcome=error' });
  return z.object({ data: z.object({ view_id: z.string() }) }).parse(made).data.view_id;
}

const viewIds = async (service: TestService): Promise<string[]> =>
  viewsShape.parse(await views(service)).data.map(({ view_id }) => view_id);

async function send(service: TestService, traceId: string): Promise<number> {
  const res = await fetch(`${service.baseUrl}/orgs/${service.orgId}/ingest/custom`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-org-api-key': service.secrets.api_key,
      'x-org-id': service.orgId,
    },
    body: JSON.stringify({ events: [{ name: 'step', outcome: 'success', duration_ms: 1, trace_id: traceId }] }),
  });
  return res.status;
}

/**
 * Sends an event until it is acknowledged: a busy machine may confirm it too late, and a client
 * then sends it again.
 */
const accepted = (service: TestService, traceId: string): Promise<void> =>
  eventually(async () => (await send(service, traceId)) === 200, { what: `${traceId} to be acknowledged` });

describe('npm start on a fresh data folder', () => {
  const dataDir = serviceDir();
  let first: TestService;
  beforeAll(async () => {
    first = await startService({ dataDir });
  });

  it('prints a curl line that sends a trace and a line that lists it', async () => {
    const { data } = answerShape.parse(await run(lineOf(first, '/ingest/chatcompletion')));
    await eventually(async () => {
      const traces = tracesShape.parse(await run(lineOf(first, '/v1/traces'))).data;
      return traces.some((trace) => trace.trace_id === data.trace_id && trace.input_tokens === 12);
    });
  });

  it('keeps its secrets readable by the owner alone and out of every log', async () => {
    expect(statSync(path.join(dataDir, 'secrets.json')).mode & 0o777).toBe(0o600);
    const { shown, ...secrets } = first.secrets;
    expect(first.stdout()).toContain(secrets.api_key);
    const files = readdirSync(path.join(dataDir, 'logs'), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const logs = files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'utf8')).join('\n');
    expect(logs).toContain('API is up');
    for (const secret of Object.values(secrets)) expect(logs).not.toContain(secret);
    await eventually(
      () =>
        z
          .object({ shown: z.literal(true) })
          .safeParse(JSON.parse(readFileSync(path.join(dataDir, 'secrets.json'), 'utf8'))).success,
    );
    expect(shown).toBeTypeOf('boolean');
  });

  it('starts without warnings about tables that do not exist yet', () => {
    expect(first.stderr()).not.toContain('does not exist');
  });

  it('rejects a second start on the same folder with one line', async () => {
    const second = runStart({ dataDir });
    expect(await second.exited).toEqual({ code: 1, signal: null });
    expect(second.stderr()).toBe(
      `SERVICE_DATA_DIR: ${dataDir} is in use by another Millrace (process ${String(first.child.pid)}); stop it, or choose another folder\n`,
    );
  });

  it('restarts a killed child on the same port and continues, with the saved views', async () => {
    const view_id = await saveView(first);
    for (const name of CHILDREN) {
      const pid = first.pidOf(name);
      process.kill(pid, 'SIGKILL');
      await eventually(() => first.pidOf(name) !== pid, { what: `another ${name}` });
    }
    await accepted(first, 'trc_after_restarts');
    await eventually(async () => (await traceIds(first)).includes('trc_after_restarts'));
    await eventually(async () => (await viewIds(first)).includes(view_id), { what: 'the saved view' });
  });

  it('drains acknowledged events on SIGTERM, and a second start shows no secrets', async () => {
    await accepted(first, 'trc_before_stop');
    const pids = CHILDREN.map((name) => first.pidOf(name));
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(pids.filter((pid) => startOf(pid) !== null)).toEqual([]);

    const again = await startService({ dataDir });
    await eventually(async () => (await traceIds(again)).includes('trc_before_stop'));
    const { shown, ...secrets } = again.secrets;
    expect(shown).toBe(true);
    for (const secret of Object.values(secrets)) expect(again.stdout()).not.toContain(secret);
    await again.stop();
  });
});

describe('npm start with an API key from the operator', () => {
  const key = 'sk_svc_of_the_operators_own_0123456789';

  it('prints commands that use the operator’s key through the environment, run in a plain shell, and do not show it again', async () => {
    const first = await startService({ env: { SERVICE_BOOTSTRAP_API_KEY: key } });
    const { data } = answerShape.parse(await run(lineOf(first, '/ingest/chatcompletion')));
    await eventually(async () => {
      const traces = tracesShape.parse(await run(lineOf(first, '/v1/traces'))).data;
      return traces.some((trace) => trace.trace_id === data.trace_id);
    });
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    const again = await startService({ dataDir: first.dataDir, env: { SERVICE_BOOTSTRAP_API_KEY: key } });
    expect(again.stdout()).not.toContain(key);
    expect(again.stdout()).toContain('as given by SERVICE_BOOTSTRAP_API_KEY');
    expect(await again.stop()).toEqual({ code: 0, signal: null });
  });
});

describe('a supervisor that is killed', () => {
  it('a killed supervisor leaves no process behind and loses no acknowledged event', async () => {
    const service = await startService();
    await accepted(service, 'trc_before_kill');
    const pids = CHILDREN.map((name) => service.pidOf(name));
    service.child.kill('SIGKILL');
    await service.exited;
    await eventually(() => pids.every((pid) => startOf(pid) === null), { what: 'the end of every child' });

    const again = await startService({ dataDir: service.dataDir });
    await eventually(async () => (await traceIds(again)).includes('trc_before_kill'));
    // An immediate second start stops the processes that still run.
    again.child.kill('SIGKILL');
    await again.exited;
    const third = await startService({ dataDir: service.dataDir });
    await eventually(async () => (await traceIds(third)).includes('trc_before_kill'));
    expect(await third.stop()).toEqual({ code: 0, signal: null });
  });
});

describe('a program started through ops/bootstrap.mjs', () => {
  it('a program started through ops/bootstrap.mjs receives each signal once, drains, and keeps its exit code', async () => {
    const service = await startService({ command: ['ops/bootstrap.mjs', 'ops/launch/start.ts'] });
    // The terminal and npm both send Ctrl-C.
    service.child.kill('SIGINT');
    service.child.kill('SIGINT');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(service.stdout()).toContain('Stopped.');
  });
});
