// Runs of a dataset: the requests to the model, the judged and stored results, and the ways in
// which a run fails.
import { expect, test } from 'vitest';
import { fail, say, score } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { asUser, call, tokenOf } from '../api/an_api.ts';
import { type EvalShown, makeJudge } from './an_eval.ts';
import { upstream, api, org, item, make, refused, byText } from './a_dataset.ts';

test('a dataset run asks the model for every item, judges the answers, and stores a trace of each', async () => {
  upstream.behave(byText({ sofa: 'yes, within 30 days', lamp: 'no' }));
  const before = upstream.requests.length;
  await org.post(
    '/v1/prompts',
    { name: 'support', version: '3', template: 'Answer: {{question}}', model: 'gpt-4o-mini' },
    201,
  );
  const { dataset_id } = await make([item('a sofa?'), item('a lamp?'), { input: { other: 1 } }]);
  const judge_id = await makeJudge(org, { rule: { type: 'contains', value: 'yes' } });
  const run = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, { judge_id, prompt_version: 'support' });
  expect(run).toMatchObject({
    status: 'complete',
    dataset_id,
    prompt_version: 'support@3',
    model: 'gpt-4o-mini',
    queued_traces: 3,
    stats: { total: 3, passed: 1, failed: 1, errors: 1, mean_score: 0.5, p50_score: 0.5 },
  });
  expect(await org.get<EvalShown>(`/v1/evals/${run.eval_id}`)).toEqual(run);
  const asked = upstream.requests.slice(before).map(({ body }) => [body.model, body.messages.at(-1)?.content]);
  expect(asked.sort()).toEqual([
    ['gpt-4o-mini', 'Answer: a lamp?'],
    ['gpt-4o-mini', 'Answer: a sofa?'],
  ]);
  const scores = await org.scores(run.eval_id);
  expect(scores.map(({ item_index, verdict }) => [item_index, verdict])).toEqual([
    [0, 'pass'],
    [1, 'fail'],
    [2, 'error'],
  ]);
  expect(scores[2]?.reason).toMatch(/\{\{question\}\}/);
  const trace_id = scores[0]?.trace_id ?? '';
  const tree = `/v1/traces/${trace_id}/tree`;
  await eventually(async () => (await call(api, 'GET', tree, { headers: org.headers })).status === 200, {
    what: 'the trace of an item',
  });
  const data = await org.get<unknown>(tree);
  expect(JSON.stringify(data)).toContain('yes, within 30 days');
  const span = JSON.parse(JSON.stringify(data)) as
    { attributes: Record<string, unknown> }[] | { spans: { attributes: Record<string, unknown> }[] };
  const [root] = Array.isArray(span) ? span : span.spans;
  expect(root?.attributes).toMatchObject({
    dataset_id,
    dataset_run: run.eval_id,
    item_index: 0,
    prompt_name: 'support',
    prompt_version: '3',
  });
});

test('two dataset runs are compared item by item', async () => {
  const { dataset_id } = await make([item('one'), item('two'), item('three')]);
  const judge_id = await makeJudge(org, { rule: { type: 'contains', value: 'yes' } });
  await org.post('/v1/prompts', { name: 'p', version: '1', template: '{{question}}' }, 201);
  const run = (model: string) =>
    org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, { judge_id, prompt_version: 'p@1', model });
  upstream.behave(byText({ one: 'yes', two: 'yes', three: 'no' }));
  const baseline = await run('m1');
  upstream.behave(byText({ one: 'yes', two: 'no', three: 'yes' }));
  const candidate = await run('m2');
  const data = await org.get<{ items: unknown[] }>(
    `/v1/evals/compare?baseline=${baseline.eval_id}&candidate=${candidate.eval_id}`,
  );
  expect(data).toMatchObject({
    baseline: { eval_id: baseline.eval_id, model: 'm1', prompt_version: 'p@1' },
    candidate: { eval_id: candidate.eval_id, model: 'm2' },
    improved: 1,
    regressed: 1,
    unchanged: 1,
    incomparable: 0,
    items: [
      { item_index: 0, baseline_score: 1, candidate_score: 1, delta: 0 },
      {
        item_index: 1,
        baseline_score: 1,
        candidate_score: 0,
        delta: -1,
        baseline_verdict: 'pass',
        candidate_verdict: 'fail',
      },
      { item_index: 2, baseline_score: 0, candidate_score: 1, delta: 1 },
    ],
  });
  expect((await org.get<EvalShown[]>(`/v1/evals?dataset_id=${dataset_id}`)).map(({ eval_id }) => eval_id)).toEqual([
    candidate.eval_id,
    baseline.eval_id,
  ]);
});

test('an LLM judge sees input and expected answer, and without a prompt the input is sent as it is', async () => {
  upstream.behave((res, request) => {
    const judging = 'response_format' in request.body;
    (judging ? score(5) : say('the answer'))(res, request);
  });
  const before = upstream.requests.length;
  const { dataset_id } = await make([
    {
      input: {
        messages: [
          { role: 'system', content: 's' },
          { role: 'user', content: 'hello' },
        ],
      },
      expected: { greeting: 'welcome' },
    },
  ]);
  const rubric = { scale: [1, 5], criteria: ['polite'] };
  const judge_id = await makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'judge-model',
    prompt_template: '{{input}} / {{expected}} / {{response}}',
    rubric,
    threshold: { pass: 4 },
  });
  const run = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, { judge_id, model: 'm' });
  expect(run).toMatchObject({
    status: 'complete',
    prompt_version: null,
    model: 'm',
    stats: { total: 1, passed: 1, mean_score: 5 },
  });
  const [answering, judging] = upstream.requests.slice(before);
  expect(answering?.body).toMatchObject({
    model: 'm',
    messages: [
      { role: 'system', content: 's' },
      { role: 'user', content: 'hello' },
    ],
  });
  const shown = JSON.stringify(judging?.body.messages);
  for (const text of ['welcome', 'hello', 'the answer']) expect(shown).toContain(text);
});

test('a dataset run that the upstream refuses fails and says why', async () => {
  upstream.behave(fail(401));
  const { dataset_id } = await make([{ input: { text: 'a' } }, { input: { text: 'b' } }]);
  const run = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, {
    judge_id: await makeJudge(org),
    model: 'm',
  });
  expect(run).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('401') as string,
    stats: { total: 2, errors: 2, mean_score: null },
  });
});

test('an item whose model answers 200 without JSON is tried once more and then counts as an error of the run', async () => {
  upstream.behave((res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('no JSON'));
  const before = upstream.requests.length;
  const { dataset_id } = await make([{ input: { text: 'an unreadable answer' } }]);
  const run = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, {
    judge_id: await makeJudge(org),
    model: 'm',
  });
  expect(run).toMatchObject({ status: 'complete', stats: { total: 1, errors: 1 } });
  expect(upstream.requests.length - before).toBe(2);
});

test('a dataset run that exhausts the quota of judge calls fails with its scores kept, and the next one is refused', async () => {
  upstream.behave((res, request) => {
    ('response_format' in request.body ? score(5) : say('an answer'))(res, request);
  });
  const owner = asUser(await tokenOf({ sub: `u_${org.org}` }), org.org);
  const policy = await call(api, 'PUT', `/orgs/${org.org}/policy`, { headers: owner, body: { judge_quota_calls: 5 } });
  expect(policy.status).toBe(200);
  const { dataset_id } = await make(Array.from({ length: 20 }, (_, i) => ({ input: { text: String(i) } })));
  const rubric = { scale: [1, 5], criteria: ['polite'] };
  const judge_id = await makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'j',
    prompt_template: '{{response}}',
    rubric,
    threshold: { pass: 4 },
  });
  const run = await org.post<EvalShown>(`/v1/datasets/${dataset_id}/run`, { judge_id, model: 'm' });
  expect(run).toMatchObject({ status: 'failed', error: expect.stringMatching(/^judge_quota_exceeded/) as string });
  expect(await org.scores(run.eval_id, '?verdict=pass')).toHaveLength(run.stats?.passed ?? -1);
  expect(run.stats?.passed).toBeLessThanOrEqual(5);
  expect(await refused(`/v1/datasets/${dataset_id}/run`, { judge_id, model: 'm' })).toMatchObject({
    status: 429,
    code: 'judge_quota_exceeded',
  });
  const judged = await call(api, 'POST', '/v1/evals', {
    headers: org.headers,
    body: { judge_id, sample: { limit: 1 } },
  });
  expect([judged.status, judged.json?.['code']]).toEqual([429, 'judge_quota_exceeded']);
  // Retry-After ends with the quota period, which is a month at most.
  const wait = Number(judged.headers.get('retry-after'));
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(31 * 86_400);
});

test('a viewer runs a dataset with grants of datasets:read on it and judges:run on the judge or the dataset', async () => {
  upstream.behave(say('yes'));
  const { dataset_id } = await make([item('a?')]);
  const other = await make([item('b?')], { name: 'other' });
  const judge_id = await makeJudge(org, { rule: { type: 'contains', value: 'yes' } });
  const second = await makeJudge(org, { rule: { type: 'contains', value: 'no' } });
  const owner = asUser(
    await tokenOf({ sub: `u_${org.org}`, email: `${org.org.replace('_', '-')}@example.com` }),
    org.org,
  );
  const email = 'vic@example.com';
  const vic = asUser(await tokenOf({ sub: 'vic', email }), org.org);
  const invited = await call(api, 'POST', `/orgs/${org.org}/members`, {
    headers: owner,
    body: { email, role: 'viewer' },
  });
  const { token } = invited.json?.['data'] as { token: string };
  expect((await call(api, 'POST', `/orgs/${org.org}/members/accept`, { headers: vic, body: { token } })).status).toBe(
    200,
  );
  const run = async (dataset: string, judge: string) => {
    const body = { judge_id: judge, model: 'gpt-4o-mini', async: true };
    const { status, json } = await call(api, 'POST', `/v1/datasets/${dataset}/run`, { headers: vic, body });
    return status === 200 ? 200 : [status, json?.['code'], json?.['detail']];
  };
  const grant = async (type: string, id: string, permissions: string[]) => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const body = { user_id: 'vic', resource: { type, id }, permissions, expires_at };
    expect((await call(api, 'POST', `/orgs/${org.org}/grants`, { headers: owner, body })).status).toBe(201);
  };
  const lacks = (permission: string) => [403, 'forbidden', `The role viewer lacks the permission ${permission}.`];

  expect(await run(dataset_id, judge_id)).toEqual(lacks('judges:run'));
  await grant('dataset', dataset_id, ['datasets:read']);
  expect(await run(dataset_id, judge_id)).toEqual(lacks('judges:run'));
  await grant('judge', judge_id, ['judges:run']);
  expect(await run(dataset_id, judge_id)).toBe(200);
  // Neither grant covers another dataset or another judge.
  expect(await run(other.dataset_id, judge_id)).toEqual(lacks('datasets:read'));
  expect(await run(dataset_id, second)).toEqual(lacks('judges:run'));
  await grant('dataset', dataset_id, ['judges:run']);
  expect(await run(dataset_id, second)).toBe(200);
});
