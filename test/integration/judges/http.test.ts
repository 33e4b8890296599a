// Judges over HTTP: accepted and rejected requests, versions, lists and permissions.
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { judgeKey, judgeVersionKey, parseJudge } from '../../../schemas/records/judge.ts';
import { asUser, tokenOf } from '../api/an_api.ts';
import { type JudgeBench, openJudgeBench } from './a_judge.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let bench: JudgeBench;
beforeAll(async () => {
  bench = await openJudgeBench();
});
afterAll(() => bench.close());
beforeEach(() => bench.newOrg());

const LLM = {
  name: 'helpful',
  kind: 'llm',
  prompt_template: 'Rate {{response}} by {{criteria}} on {{scale}}.',
  model: 'gpt-4o',
  rubric: { scale: [1, 3, 5], criteria: ['helpful', 'short'] },
  threshold: { pass: 5, warn: 3 },
  scope: { source_format: ['messages'] },
  cooldown_seconds: 60,
};
const RULE = {
  name: 'no secrets',
  kind: 'deterministic',
  rule: { type: 'regex_absent', pattern: 'sk-\\w+' },
  threshold: { pass: 1 },
};
const post = (body: unknown) => bench.call('POST', '/v1/judges', body);
const dataOf = async (answer: ReturnType<typeof post>): Promise<Record<string, unknown>> =>
  (await answer).json?.['data'] as Record<string, unknown>;
const listed = async (query: string): Promise<{ data: Record<string, unknown>[]; meta: Record<string, unknown> }> => {
  const answer = await bench.call('GET', `/v1/judges${query}`);
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  return answer.json as { data: Record<string, unknown>[]; meta: Record<string, unknown> };
};

it('judges of both kinds are created and shown with all their fields', async () => {
  const made = await post(RULE);
  expect(made.status).toBe(201);
  const rule = made.json?.['data'] as { judge_id: string; version: number; created_at: string };
  expect(Object.keys(rule).sort()).toEqual(['created_at', 'judge_id', 'version']);
  expect(rule.judge_id).toMatch(/^judge_[0-9a-f]{16}$/);
  expect(rule.version).toBe(1);
  const llm = (await dataOf(post(LLM))) as { judge_id: string; created_at: string };
  expect((await bench.call('GET', `/v1/judges/${rule.judge_id}`)).json?.['data']).toEqual({
    judge_id: rule.judge_id,
    version: 1,
    name: 'no secrets',
    kind: 'deterministic',
    rule: { type: 'regex_absent', fields: ['response'], pattern: 'sk-\\w+' },
    prompt_template: null,
    model: null,
    rubric: null,
    threshold: { pass: 1 },
    scope: {},
    cooldown_seconds: 0,
    enabled: true,
    guard: null,
    created_at: rule.created_at,
    updated_at: rule.created_at,
  });
  expect((await bench.call('GET', `/v1/judges/${llm.judge_id}`)).json?.['data']).toEqual({
    ...LLM,
    judge_id: llm.judge_id,
    version: 1,
    rule: null,
    enabled: true,
    guard: null,
    created_at: llm.created_at,
    updated_at: llm.created_at,
  });
});

it('null equals an omitted optional field, and every type of rule may name fields', async () => {
  const shown = async (body: unknown) => {
    const made = await post(body);
    expect(made.status).toBe(201);
    const { judge_id } = made.json?.['data'] as { judge_id: string };
    return (await bench.call('GET', `/v1/judges/${judge_id}`)).json?.['data'];
  };
  const rule = { ...RULE.rule, fields: null };
  const bare = { ...RULE, rule, threshold: { pass: 1, warn: null }, scope: null, enabled: null };
  expect(await shown(bare)).toMatchObject({
    rule: { fields: ['response'] },
    threshold: { pass: 1 },
    scope: {},
    enabled: true,
  });
  expect(await shown({ ...LLM, cooldown_seconds: null, scope: { tags: null } })).toMatchObject({
    cooldown_seconds: 0,
    scope: {},
  });
  const outcome = { type: 'outcome_is', outcomes: ['success'], fields: ['outcome'] };
  expect(await shown({ ...RULE, rule: outcome })).toMatchObject({ rule: outcome });
});

describe('a judge is refused', () => {
  it.each<[string, Record<string, unknown>]>([
    ['kind', { ...RULE, kind: 'human' }],
    ['name', { ...RULE, name: '' }],
    ['name', { ...RULE, name: undefined }],
    ['rule', { ...RULE, rule: undefined }],
    ['rule.type', { ...RULE, rule: { type: 'is_nice' } }],
    ['rule.pattern', { ...RULE, rule: { type: 'regex_absent' } }],
    ['rule.pattern', { ...RULE, rule: { type: 'regex_absent', pattern: '(?=x)' } }],
    ['rule.pattern', { ...RULE, rule: { type: 'regex_present', pattern: '[' } }],
    ['rule.pattern', { ...RULE, rule: { type: 'regex_present', pattern: '(?:ab){600}c' } }],
    ['rule.pattern', { ...RULE, rule: { type: 'contains', value: 'x', pattern: 'x' } }],
    ['rule.value', { ...RULE, rule: { type: 'contains' } }],
    ['rule.schema', { ...RULE, rule: { type: 'json_schema' } }],
    ['rule.schema', { ...RULE, rule: { type: 'json_schema', schema: { type: 'strange' } } }],
    ['rule.max', { ...RULE, rule: { type: 'max_length' } }],
    ['rule.max', { ...RULE, rule: { type: 'max_length', max: 1.5 } }],
    ['rule.max', { ...RULE, rule: { type: 'max_cost_usd', max: -1 } }],
    ['rule.outcomes', { ...RULE, rule: { type: 'outcome_is', outcomes: [] } }],
    ['rule.fields', { ...RULE, rule: { type: 'json_valid', fields: ['answer'] } }],
    ['rule.flags', { ...RULE, rule: { type: 'json_valid', flags: 'i' } }],
    ['threshold', { ...RULE, threshold: undefined }],
    ['threshold.pass', { ...RULE, threshold: { warn: 1 } }],
    ['threshold.warn', { ...RULE, threshold: { pass: 0.5, warn: 0.7 } }],
    ['threshold.pass', { ...RULE, threshold: { pass: 1.1 } }],
    ['threshold.pass', { ...RULE, threshold: { pass: -0.1 } }],
    ['threshold.warn', { ...RULE, threshold: { pass: 1, warn: -1 } }],
    ['threshold.pass', { ...LLM, threshold: { pass: 6 } }],
    ['threshold.pass', { ...LLM, threshold: { pass: 0.5 } }],
    ['threshold.warn', { ...LLM, threshold: { pass: 3, warn: 0 } }],
    ['threshold.warn', { ...LLM, threshold: { pass: 3, warn: 4 } }],
    ['scope.team', { ...RULE, scope: { team: ['a'] } }],
    ['scope.tags', { ...RULE, scope: { tags: 'prod' } }],
    ['model', { ...RULE, model: 'gpt-4o' }],
    ['enabled', { ...RULE, enabled: 'yes' }],
    ['prompt_template', { ...LLM, prompt_template: '' }],
    ['model', { ...LLM, model: undefined }],
    ['rule', { ...LLM, rule: RULE.rule }],
    ['cooldown_seconds', { ...LLM, cooldown_seconds: -1 }],
    ['cooldown_seconds', { ...LLM, cooldown_seconds: 1.5 }],
  ])('a judge is rejected for its %s, which the answer names', async (field, body) => {
    const answer = await post(body);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toMatch(new RegExp(`^${field.replace('.', '\\.')}(\\[\\d+\\])?:`));
  });

  it.each<[string, unknown]>([
    ['none', undefined],
    ['null', null],
    ['a text', 'five stars'],
    ['one number', { scale: [1], criteria: ['a'] }],
    ['numbers that fall', { scale: [5, 1], criteria: ['a'] }],
    ['numbers that stay', { scale: [1, 1], criteria: ['a'] }],
    ['texts for numbers', { scale: ['1', '2'], criteria: ['a'] }],
    ['no criteria', { scale: [1, 2], criteria: [] }],
    ['an empty criterion', { scale: [1, 2], criteria: [''] }],
    ['no scale', { criteria: ['a'] }],
    ['something else', { scale: [1, 2], criteria: ['a'], weight: 1 }],
  ])('a judge is rejected for an invalid rubric: %s', async (_what, rubric) => {
    const answer = await post({ ...LLM, rubric });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_rubric']);
    expect(answer.json?.['detail']).toMatch(/^rubric/);
  });
});

it('a judge may have thresholds at both ends of the scale', async () => {
  for (const body of [
    { ...RULE, threshold: { pass: 0 } },
    { ...RULE, threshold: { pass: 1, warn: 0 } },
    { ...LLM, threshold: { pass: 5, warn: 1 } },
    { ...LLM, rubric: { scale: [-2, 0, 2], criteria: ['a'] }, threshold: { pass: 0, warn: -2 } },
  ])
    expect((await post(body)).status).toBe(201);
});

it('a change that moves a threshold off the scale is rejected and creates no version', async () => {
  const { judge_id } = (await dataOf(post(LLM))) as { judge_id: string };
  const path = `/v1/judges/${judge_id}`;
  const narrow = { scale: [1, 2, 3], criteria: ['helpful'] };
  for (const [patch, detail] of [
    [{ threshold: { pass: 7 } }, "threshold.pass: must be a number on the judge's scale, from 1 to 5"],
    [{ rubric: narrow }, "threshold.pass: must be a number on the judge's scale, from 1 to 3"],
    [
      { rubric: narrow, threshold: { pass: 3, warn: 0 } },
      "threshold.warn: must be a number on the judge's scale, from 1 to 3",
    ],
    [{ threshold: { pass: 3, warn: 4 } }, 'threshold.warn: must be a number up to threshold.pass'],
  ] as const) {
    const { status, json } = await bench.call('PATCH', path, patch);
    expect([status, json?.['code'], json?.['detail']]).toEqual([422, 'invalid_request', detail]);
  }
  const changed = await bench.call('PATCH', path, { rubric: narrow, threshold: { pass: 3, warn: 2 } });
  expect([changed.status, changed.json?.['data']]).toMatchObject([200, { version: 2 }]);
});

it('a judge whose threshold is off its scale since before can be renamed and disabled', async () => {
  const { judge_id } = (await dataOf(post(LLM))) as { judge_id: string };
  const judges = await bench.api.log.bucket('judges');
  const key = judgeKey(bench.org(), judge_id);
  const stored = parseJudge((await judges.get(key))?.string() ?? '');
  await judges.put(key, JSON.stringify({ ...stored, threshold: { pass: 9 } }));
  const path = `/v1/judges/${judge_id}`;
  const shown = async () => (await bench.call('GET', path)).json?.['data'];
  await vi.waitFor(async () => {
    expect(await shown()).toMatchObject({ threshold: { pass: 9 } });
  });
  expect((await bench.call('PATCH', path, { name: 'old' })).status).toBe(200);
  expect((await bench.call('DELETE', path)).status).toBe(200);
  expect(await shown()).toMatchObject({ name: 'old', enabled: false, threshold: { pass: 9 } });
});

it('each change of a judge creates a version, and earlier ones are kept', async () => {
  const { judge_id } = (await dataOf(post(RULE))) as { judge_id: string };
  const path = `/v1/judges/${judge_id}`;
  const second = await bench.call('PATCH', path, { name: 'renamed', threshold: { pass: 1, warn: 0.5 } });
  expect(second.status).toBe(200);
  expect(second.json?.['data']).toMatchObject({
    judge_id,
    version: 2,
    name: 'renamed',
    threshold: { pass: 1, warn: 0.5 },
    rule: { pattern: 'sk-\\w+' },
  });
  expect((await bench.call('PATCH', path, { name: 'renamed' })).json?.['data']).toMatchObject({ version: 2 });
  const both = await Promise.all(['a', 'b', 'c'].map((name) => bench.call('PATCH', path, { name })));
  expect(both.map(({ json }) => (json?.['data'] as { version: number }).version).sort()).toEqual([3, 4, 5]);
  const versions = await bench.api.log.bucket('judge_versions');
  const kept = await Promise.all(
    [1, 2, 3, 4].map(async (version) =>
      parseJudge((await versions.get(judgeVersionKey(bench.org(), judge_id, version)))?.string() ?? ''),
    ),
  );
  expect(kept.map(({ version }) => version)).toEqual([1, 2, 3, 4]);
  expect(kept.slice(0, 2).map(({ name }) => name)).toEqual(['no secrets', 'renamed']);
  expect(new Set(kept.slice(2).map(({ name }) => name)).size).toBe(2);
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => bench.call('PATCH', path, { name: `n${n}` })));
  expect(
    many.map(({ json }) => (json?.['data'] as { version?: number } | undefined)?.version ?? 0).sort((a, b) => a - b),
  ).toEqual(Array.from({ length: 20 }, (_, n) => 6 + n));
  const refused = await bench.call('PATCH', path, { rubric: LLM.rubric });
  expect([refused.status, refused.json?.['detail']]).toEqual([
    422,
    'rubric: is not a field of a judge of kind deterministic',
  ]);
  const large = await bench.call('PATCH', path, { rule: { type: 'regex_absent', pattern: '(?:ab){600}c' } });
  expect([large.status, large.json?.['detail']]).toEqual([
    422,
    expect.stringMatching(
      /^rule\.pattern: the pattern has 1203 instructions .* must have at most 1000\. Use smaller counts in \{\}/,
    ),
  ]);
  const bad = await bench.call('PATCH', path, { rule: { type: 'regex_absent', pattern: '(' } });
  expect([bad.status, String(bad.json?.['detail']).slice(0, 13)]).toEqual([422, 'rule.pattern:']);
});

it('deleting a judge disables it, and a change enables it again', async () => {
  const { judge_id } = (await dataOf(post(LLM))) as { judge_id: string };
  const path = `/v1/judges/${judge_id}`;
  expect((await bench.call('DELETE', path)).json?.['data']).toEqual({ judge_id, deleted: true });
  expect((await bench.call('GET', path)).json?.['data']).toMatchObject({ enabled: false, version: 2 });
  expect((await bench.call('DELETE', path)).status).toBe(200);
  expect((await bench.call('GET', path)).json?.['data']).toMatchObject({ enabled: false, version: 2 });
  expect((await bench.call('PATCH', path, { enabled: true })).json?.['data']).toMatchObject({
    enabled: true,
    version: 3,
  });
});

it('judges of another organization and unknown ones are not found', async () => {
  const { judge_id } = (await dataOf(post(RULE))) as { judge_id: string };
  await bench.newOrg();
  for (const id of [judge_id, 'judge_0000000000000000', 'x'])
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { name: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await bench.call(method, `/v1/judges/${id}`, body);
      expect([method, answer.status, answer.json?.['code']]).toEqual([method, 404, 'judge_not_found']);
    }
  expect((await listed('')).data).toEqual([]);
});

it('judges are listed newest first, by name, kind and enabled, page by page', async () => {
  const names = ['Alpha', 'beta', 'Alphabet', 'gamma', 'ALPINE'];
  for (const name of names)
    await post(name === 'gamma' ? { ...LLM, name } : { ...RULE, name, enabled: name !== 'beta' });
  const namesOf = ({ data }: { data: Record<string, unknown>[] }) => data.map(({ name }) => name);
  const all = await listed('');
  expect(new Set(namesOf(all))).toEqual(new Set(names));
  expect(all.data.map(({ created_at }) => created_at)).toEqual(
    all.data
      .map(({ created_at }) => String(created_at))
      .toSorted()
      .toReversed(),
  );
  expect(all.meta).toMatchObject({ total: 5, page: 1, per_page: 50, has_more: false, next_cursor: null });
  expect(new Set(namesOf(await listed('?name=alp')))).toEqual(new Set(['Alpha', 'Alphabet', 'ALPINE']));
  expect(namesOf(await listed('?kind=llm'))).toEqual(['gamma']);
  expect(namesOf(await listed('?enabled=false'))).toEqual(['beta']);
  expect((await listed('?enabled=true&kind=deterministic&name=a')).meta).toMatchObject({ total: 3 });
  expect((await listed('?limit=2&offset=2')).meta).toMatchObject({ total: 5, page: 2, per_page: 2, has_more: true });
  const paged: unknown[] = [];
  let cursor = '';
  for (let page = 1; ; page += 1) {
    const { data, meta } = await listed(`?limit=2${cursor}`);
    paged.push(...namesOf({ data }));
    expect(meta).toMatchObject({ page, total: 5 });
    if (typeof meta['next_cursor'] !== 'string') break;
    cursor = `&cursor=${meta['next_cursor']}`;
  }
  expect(paged).toEqual(namesOf(all));
  for (const query of ['?kind=human', '?enabled=maybe', '?limit=0', '?cursor=x'])
    expect((await bench.call('GET', `/v1/judges${query}`)).json?.['code']).toBe('invalid_request');
});

it('only admins create judges, and a grant must name an existing one', async () => {
  const read = await bench.keyOf(['judges:read']);
  expect((await bench.call('POST', '/v1/judges', RULE, { 'X-Org-Api-Key': read })).json?.['code']).toBe('forbidden');
  expect((await bench.call('GET', '/v1/judges', undefined, { 'X-Org-Api-Key': read })).status).toBe(200);
  const { judge_id } = (await dataOf(post(RULE))) as { judge_id: string };
  const owner = asUser(await tokenOf({ sub: `u_${bench.org()}`, email: `${bench.org()}@example.com` }), bench.org());
  const grant = (id: string) => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const body = {
      user_id: `u_${bench.org()}`,
      resource: { type: 'judge', id },
      permissions: ['judges:write'],
      expires_at,
    };
    return bench.call('POST', `/orgs/${bench.org()}/grants`, body, owner);
  };
  expect((await grant('judge_0000000000000000')).json?.['code']).toBe('judge_not_found');
  expect((await grant(judge_id)).json?.['code']).not.toBe('judge_not_found');
});
