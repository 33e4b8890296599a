// Scores across traces, and scores that are deleted: who may delete them, where they are gone, and
// that nothing brings them back.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queueScore } from '../../../ops/exchange/score_queue.ts';
import { scoreDeletion } from '../../../schemas/score_deletion.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Caller, type Tenant } from '../a_tenant.ts';
import { makeMember } from './a_cast.ts';
import { asUser, type TestApi } from './an_api.ts';

let service: TestService;
let api: TestApi;
let tenant: Tenant;
let stranger: Tenant;
let member: Caller;

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
  tenant = await aTenant({ api, database: service.database });
  stranger = await aTenant({ api, database: service.database });
  const { org } = tenant;
  member = asUser((await makeMember(api, 'member', { org, owner: `u_${org}` })).token, org);
  const events = Array.from({ length: 6 }, (_, n) => ({
    name: 'answer',
    outcome: 'success',
    duration_ms: 5,
    trace_id: `t-${n}`,
    span_id: `s-${n}`,
  }));
  await tenant.ingest('custom', { events });
  await tenant.landed(6);
});
afterAll(() => service.close());

interface Score {
  score_id: string;
  trace_id: string;
  name: string;
  value: unknown;
}
async function give(trace_id: string, name: string, value: unknown, as: Caller = {}): Promise<string> {
  const given = await tenant.call('POST', '/v1/scores', { headers: as, body: { trace_id, name, value } });
  expect([given.status, given.text]).toEqual([201, given.text]);
  return (given.json?.['data'] as Score).score_id;
}
const list = async (query: string): Promise<Score[]> =>
  (await tenant.get(`/v1/scores?${query}`)).json?.['data'] as Score[];
const remove = (score_id: string, as: Caller = {}, of = tenant) =>
  of.call('DELETE', `/v1/scores/${score_id}`, { headers: as });

describe('scores across traces', () => {
  test('are filtered by name, author, traces and time, and paged by cursor without a gap or a repeat', async () => {
    const began = new Date().toISOString();
    for (let n = 0; n < 5; n++) await give(`t-${n}`, n % 2 === 0 ? 'even' : 'odd', n, n < 2 ? member : {});
    await eventually(async () => (await list(`since=${began}`)).length === 5);
    expect((await list('name=even')).map(({ value }) => value)).toEqual([4, 2, 0]);
    expect((await list(`user=user_member_of_${tenant.org}`)).map(({ value }) => value)).toEqual([1, 0]);
    expect((await list('trace_ids=t-1,t-3')).map(({ value }) => value)).toEqual([3, 1]);
    expect(await list(`until=${began}`)).toEqual([]);
    expect(await list('source=judge')).toEqual([]);
    const walked: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const more = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await tenant.get(`/v1/scores?since=${began}&limit=2${more}`);
      walked.push(...(page.json?.['data'] as Score[]).map(({ score_id }) => score_id));
      const meta = page.json?.['meta'] as { total: number; next_cursor: string | null };
      expect(meta.total).toBe(5);
      cursor = meta.next_cursor;
    }
    expect(walked).toHaveLength(5);
    expect(new Set(walked).size).toBe(5);
    const others = (await stranger.get('/v1/scores')).json?.['data'];
    expect(others).toEqual([]);
  });

  test.each([
    ['trace_id=t-1&trace_ids=t-2', 'trace_ids: cannot be given together with trace_id'],
    ['cursor=nonsense', 'cursor: must be a cursor that this list has returned'],
    ['since=yesterday', 'since: must be an ISO 8601 time'],
  ])('refuse %s', async (query, detail) => {
    const refused = await tenant.get(`/v1/scores?${query}`);
    expect([refused.status, refused.json?.['detail']]).toEqual([422, detail]);
  });
});

describe('a deleted score', () => {
  test('is gone from the trace, the lists, the facets, the analytics and the views of analysts', async () => {
    const score_id = await give('t-5', 'flaky', 'yes');
    const counts = async () => {
      const feedback = await service.database.run(
        `SELECT count() FROM analyst_feedback WHERE org_id = '${tenant.org}' AND name = 'flaky'`,
      );
      const facets = (await tenant.get('/v1/traces/facets?fields=score')).text;
      const filtered = (await tenant.get('/v1/traces?score=flaky:eq:yes')).json?.['meta'] as { total: number };
      const unscored = (await tenant.get('/v1/traces?scored=false')).text;
      return {
        trace: (await list('trace_id=t-5')).length,
        across: (await list('name=flaky')).length,
        filtered: filtered.total,
        facet: facets.includes('flaky'),
        unscored: unscored.includes('"t-5"'),
        feedback: Number(feedback),
      };
    };
    await eventually(async () => (await list('trace_id=t-5')).length === 1);
    expect(await counts()).toEqual({ trace: 1, across: 1, filtered: 1, facet: true, unscored: false, feedback: 1 });
    for (let n = 0; n < 2; n++) expect((await remove(score_id)).json?.['data']).toEqual({ score_id, deleted: true });
    await eventually(async () => (await list('trace_id=t-5')).length === 0);
    expect(await counts()).toEqual({ trace: 0, across: 0, filtered: 0, facet: false, unscored: true, feedback: 0 });
    expect((await remove(score_id)).status).toBe(200);
  });

  test('of another author needs judges:write, and that of another organization does not exist', async () => {
    const score_id = await give('t-4', 'mine', 1);
    await eventually(async () => (await list('name=mine')).length === 1);
    const refused = await remove(score_id, member);
    expect([refused.status, refused.json?.['code']]).toEqual([403, 'forbidden']);
    const foreign = await remove(score_id, {}, stranger);
    expect([foreign.status, foreign.json?.['code']]).toEqual([404, 'not_found']);
    const own = await give('t-4', 'own', 1, member);
    expect((await remove(own, member)).status).toBe(200);
    const reader = await tenant.keyOf('traces:read');
    expect((await remove(score_id, reader)).status).toBe(403);
    const audit = await tenant.get('/v1/audit-log?action=score.delete', tenant.owner);
    if (audit.status === 200) expect(audit.text).toContain(own);
  });

  test('stays deleted when its deletion lands first, and when the score lands again', async () => {
    const score: UserScore = {
      score_id: `score_${'ab'.repeat(16)}`,
      org_id: tenant.org,
      trace_id: 't-3',
      span_id: '',
      trace_started_at: Date.now(),
      name: 'late',
      data_type: 'numeric',
      number: 1,
      text: '',
      comment: '',
      author_type: 'user',
      author_id: 'someone',
      created_at: Date.now(),
    };
    const rows = async () =>
      Number(await service.database.run(`SELECT count() FROM user_scores WHERE score_id = '${score.score_id}'`));
    await queueScore(api.log, scoreDeletion(score, { author_type: 'user', author_id: 'someone' }));
    await eventually(async () => (await rows()) === 1);
    await queueScore(api.log, score);
    await eventually(async () => (await rows()) === 2);
    expect(await list('name=late')).toEqual([]);
    await service.database.run('OPTIMIZE TABLE user_scores FINAL');
    expect(await list('name=late')).toEqual([]);
  });
});
