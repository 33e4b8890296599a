// Times at the limits of the store and of JavaScript in every time parameter: the API answers
// correctly or with 422. It never answers 500, and never returns a wrong list because a time was
// truncated or wrapped around.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { onceFree } from '../api/a_job.ts';
import { ADMIN_TOKEN, type Answer, anEvent, call, INGEST, ORG, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;

let service: TestService;
let api: TestApi;
let judge_id = '';

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
  const request = { model: 'gpt-4o', messages: [{ role: 'user', content: 'walrus' }] };
  const event = anEvent({
    trace_id: 'trc_times',
    session_id: 's',
    user_id: 'u',
    attributes: { session_id: 's', user_id: 'u' },
  });
  await call(api, 'POST', `${INGEST}/custom`, { body: event });
  await call(api, 'POST', `${INGEST}/chatcompletion`, {
    body: {
      request,
      response: { choices: [] },
      outcome: 'success',
      duration_ms: 1,
      trace_id: 'trc_times_2',
      attributes: { session_id: 's', user_id: 'u' },
    },
  });
  const judge = await call(api, 'POST', '/v1/judges', {
    body: { name: 'times', kind: 'deterministic', rule: { type: 'contains', value: 'x' }, threshold: { pass: 1 } },
  });
  judge_id = String((judge.json?.['data'] as Data)['judge_id']);
  await eventually(async () => ((await call(api, 'GET', '/v1/traces')).json?.['data'] as Data[]).length === 2, {
    what: 'both traces',
  });
  await eventually(async () => sizeOf(await call(api, 'GET', '/v1/traces?search=walrus')) === 1, {
    what: 'the index of the texts',
  });
  await eventually(async () => ((await call(api, 'GET', '/v1/users')).json?.['data'] as Data[]).length === 1, {
    what: 'the user',
  });
  await eventually(
    async () => ((await call(api, 'GET', `/orgs/${ORG}/audit-log`)).json?.['data'] as Data[]).length > 0,
    {
      what: 'a record of a mutation',
    },
  );
}, 120_000);
afterAll(() => service.close());

const LONG_AGO = [
  '0100-01-01',
  '0101-01-01T00:00:00+23:59',
  '1677-09-21T00:00:00Z',
  '1899-12-31T23:59:59.999Z',
  '1900-01-01',
  '1969-12-31',
  '1970-01-01',
  '1971-01-01',
];
const FAR_AHEAD = [
  '2099-12-31',
  '2106-02-08',
  '2149-06-07',
  '2262-04-12T00:00:00Z',
  '2299-12-31T23:59:59.999Z',
  '2300-01-01',
  '9999-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59.999-23:59',
];

const operator = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
const sizeOf = ({ json }: Answer): number => (json?.['data'] as unknown[]).length;

describe.each([
  ['/v1/traces?', 2],
  ['/v1/traces?search=walrus&', 1],
  ['/v1/sessions?', 1],
  ['/v1/users?', 1],
  [`/orgs/${ORG}/audit-log?`, null],
  ['/v1/incidents?', 0],
])('%s', (path, all) => {
  test.each([
    ...LONG_AGO.map((at) => [`since=${at}`, 'all'] as const),
    ...FAR_AHEAD.map((at) => [`since=${at}`, 'none'] as const),
    ...LONG_AGO.map((at) => [`until=${at}`, 'none'] as const),
    ...FAR_AHEAD.map((at) => [`until=${at}`, 'all'] as const),
    [`since=${LONG_AGO[0] ?? ''}&until=9999-12-31`, 'all'] as const,
  ])('%s has %s', async (query, expected) => {
    const answer = await call(api, 'GET', path + query.replaceAll('+', '%2B'));
    expect([query, answer.status, answer.text]).toEqual([query, 200, expect.any(String)]);
    const whole = all ?? sizeOf(await call(api, 'GET', path));
    expect(sizeOf(answer)).toBe(expected === 'all' ? whole : 0);
  });
});

test.each([...LONG_AGO, ...FAR_AHEAD])('a search and the counts of sampling accept times from %s', async (at) => {
  const time = at.replaceAll('+', '%2B');
  const search = await call(api, 'GET', `/v1/spans/search?q=walrus&since=${time}`);
  expect([search.status, sizeOf(search)]).toEqual([200, LONG_AGO.includes(at) ? 1 : 0]);
  for (const name of ['since', 'until']) {
    const counts = await call(api, 'GET', `/v1/sampling?${name}=${time}`);
    expect([name, counts.status, counts.text]).toEqual([name, 200, expect.any(String)]);
    const isWhole = LONG_AGO.includes(at) === (name === 'since');
    expect([name, (counts.json?.['data'] as Data)['kept']]).toEqual([name, isWhole ? 2 : 0]);
  }
});

test.each([...LONG_AGO, ...FAR_AHEAD])('an eval of a sample from %s takes the traces since then', async (since) => {
  const answer = await call(api, 'POST', '/v1/evals', { body: { judge_id, sample: { limit: 5, since } } });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  expect((answer.json?.['data'] as Data)['queued_traces']).toBe(LONG_AGO.includes(since) ? 2 : 0);
});

const instant = (at: string): string => (at.includes('T') ? at : `${at}T00:00:00Z`);
const DAY_MS = 86_400_000;

test.each([...LONG_AGO, ...FAR_AHEAD])('a repricing of the days around %s is started or rejected', async (at) => {
  for (const from of [Date.parse(instant(at)), Date.parse(instant(at)) - DAY_MS]) {
    const [since, until] = [new Date(from).toISOString(), new Date(from + DAY_MS).toISOString()];
    const answer = await call(api, 'POST', '/admin/reprice', {
      headers: operator,
      body: { org_id: ORG, since, until },
    });
    const isDatetime = /^\d{4}-/.test(since) && /^\d{4}-/.test(until);
    expect([since, answer.status, answer.text]).toEqual([
      since,
      from >= 0 && isDatetime ? 200 : 422,
      expect.any(String),
    ]);
  }
});

const JOBS = ['forecast', 'anomalies', 'alerts', 'agent-drift', 'incidents', 'budget-period', 'retention'];
const runJob = (name: string, now: string) =>
  onceFree(() => call(api, 'POST', `/admin/jobs/${name}/run`, { headers: operator, body: { now } }));

test.each([
  '0001-01-01T00:00:00Z',
  '1899-12-31T23:59:59Z',
  '1969-12-31T23:59:59Z',
  '1970-12-31T23:59:59.999Z',
  '1971-01-01T00:00:00+00:01',
  '2100-01-01T00:00:00Z',
  '2099-12-31T23:59:59-00:01',
  '2149-06-07T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
])('a job as of %s is rejected with the accepted range', async (now) => {
  for (const name of JOBS) {
    const { status, json } = await runJob(name, now);
    expect([status, json]).toEqual([
      422,
      expect.objectContaining({
        code: 'invalid_request',
        detail: 'now: must be a time from 1971-01-01T00:00:00.000Z to 2099-12-31T23:59:59.999Z',
      }),
    ]);
  }
});

// The last time expires everything with a retention of less than decades, so it runs last.
test.each(['1971-01-01T00:00:00Z', '1971-01-02T00:00:00Z', '1972-01-02T00:00:00Z', '2099-12-31T23:59:59.999Z'])(
  'every job runs as of %s',
  async (now) => {
    for (const name of JOBS) {
      const { status, text } = await runJob(name, now);
      expect([name, status, text]).toEqual([name, 200, expect.any(String)]);
    }
  },
  60_000,
);

test.each([Number.MAX_SAFE_INTEGER, 8.64e15, 8.64e15 + 1, 1e14, -1, -1e14, -8.64e15 - 1, Number.MIN_SAFE_INTEGER])(
  'an invented cursor for the time %i gives a page or is rejected',
  async (ms) => {
    const encode = (position: unknown): string => Buffer.from(JSON.stringify(position)).toString('base64url');
    for (const [path, id] of [
      ['/v1/traces', 'trc_times'],
      ['/v1/traces', '18446744073709551615'],
      [`/orgs/${ORG}/audit-log`, 'aud_0000000000000000'],
      [`/orgs/${ORG}/audit-log`, `aud_${'0'.repeat(32)}`],
      ['/v1/incidents', 'inc_0000000000000000'],
    ]) {
      const { status, text } = await call(api, 'GET', `${path ?? ''}?cursor=${encode([ms, id, 0])}`);
      expect([path, status === 200 || status === 422, text]).toEqual([path, true, expect.any(String)]);
    }
  },
);
