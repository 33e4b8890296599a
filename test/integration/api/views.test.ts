// Saved views over HTTP: who sees, changes and deletes them, and how many there can be.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { VIEWS_MAKER_MAX, VIEWS_ORG_MAX } from '../../../api/control/views/views.ts';
import { viewKey, type ViewRecord } from '../../../schemas/records/view.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { aTenant, type Caller, type Tenant } from '../a_tenant.ts';
import { makeMember } from './a_cast.ts';
import { asUser, call, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;
let other: TestApi;
let tenant: Tenant;
/** A member, and an admin, who may change shared views. */
let member: Caller;
let admin: Caller;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
  other = await startTestApi({ natsUrl: nats.url });
});
afterAll(async () => {
  await api.close();
  await other.close();
  await nats.remove();
});

beforeEach(async () => {
  tenant = await aTenant({ api });
  const { org } = tenant;
  const join = async (role: 'member' | 'admin') =>
    asUser((await makeMember(api, role, { org, owner: `u_${org}` })).token, org);
  member = await join('member');
  admin = await join('admin');
});

const view = (fields: Record<string, unknown> = {}) => ({
  name: 'Mine',
  page: 'traces',
  query: 'outcome=error',
  ...fields,
});
interface Shown {
  view_id: string;
  name: string;
  query: string;
  scope: string;
  made_by: string;
}
async function create(as: Caller, fields: Record<string, unknown> = {}): Promise<Shown> {
  const answer = await tenant.call('POST', '/v1/views', { headers: as, body: view(fields) });
  expect([answer.status, answer.text]).toEqual([201, answer.text]);
  return answer.json?.['data'] as Shown;
}
const status = async (method: string, { view_id }: Shown, as: Caller, body?: unknown): Promise<number> =>
  (await tenant.call(method, `/v1/views/${view_id}`, { headers: as, ...(body === undefined ? {} : { body }) })).status;
const names = async (as: Caller, query = ''): Promise<string[]> =>
  ((await tenant.get(`/v1/views${query}`, as)).json?.['data'] as Shown[]).map(({ name }) => name);

describe('a private view', () => {
  it('is seen, changed and deleted by its maker only; others are told that it does not exist', async () => {
    const mine = await create(member);
    expect(mine).toMatchObject({ name: 'Mine', query: 'outcome=error', scope: 'private' });
    expect(mine.made_by).toBe(`user_member_of_${tenant.org}`);
    expect(await names(member)).toEqual(['Mine']);
    for (const stranger of [admin, tenant.owner, tenant.key]) {
      expect(await names(stranger)).toEqual([]);
      expect(await status('GET', mine, stranger)).toBe(404);
      expect(await status('PATCH', mine, stranger, { name: 'x' })).toBe(404);
      expect(await status('DELETE', mine, stranger)).toBe(404);
    }
    expect(await status('PATCH', mine, member, { name: 'Other', query: '' })).toBe(200);
    expect(await names(member)).toEqual(['Other']);
    expect(await status('DELETE', mine, member)).toBe(200);
    expect(await status('GET', mine, member)).toBe(404);
  });

  it('of an API key belongs to the key', async () => {
    const own = await create(tenant.key);
    expect(await status('GET', own, tenant.key)).toBe(200);
    expect(await status('GET', own, tenant.owner)).toBe(404);
  });
});

describe('a view of the organization', () => {
  it('is used by everybody who may read traces, and changed with judges:write only', async () => {
    expect((await tenant.call('POST', '/v1/views', { headers: member, body: view({ scope: 'org' }) })).status).toBe(
      403,
    );
    const shared = await create(admin, { name: 'Shared', scope: 'org' });
    expect(await names(member)).toEqual(['Shared']);
    expect(await status('GET', shared, member)).toBe(200);
    expect(await status('PATCH', shared, member, { name: 'x' })).toBe(403);
    expect(await status('DELETE', shared, member)).toBe(403);
    expect(await status('PATCH', shared, tenant.owner, { name: 'Renamed' })).toBe(200);
    expect(await names(member)).toEqual(['Renamed']);
  });

  it('can be made private by its maker only, and a private one shared with judges:write only', async () => {
    const shared = await create(admin, { scope: 'org' });
    expect(await status('PATCH', shared, tenant.owner, { scope: 'private' })).toBe(403);
    expect(await status('PATCH', shared, admin, { scope: 'private' })).toBe(200);
    expect(await status('GET', shared, member)).toBe(404);
    const mine = await create(member);
    expect(await status('PATCH', mine, member, { scope: 'org' })).toBe(403);
  });

  it('is not visible to another organization', async () => {
    const shared = await create(admin, { scope: 'org' });
    const foreign = await aTenant({ api });
    expect((await foreign.get(`/v1/views/${shared.view_id}`)).status).toBe(404);
    expect((await foreign.get('/v1/views')).json?.['data']).toEqual([]);
  });
});

it('views are listed by name, by page, and at every process', async () => {
  await create(member, { name: 'b' });
  await create(admin, { name: 'a', scope: 'org' });
  await create(member, { name: 'c', page: 'costs' });
  expect(await names(member)).toEqual(['a', 'b', 'c']);
  expect(await names(member, '?page=traces')).toEqual(['a', 'b']);
  expect(await names(member, '?limit=1&offset=1')).toEqual(['b']);
  const there = async () => {
    const answer = await call(other, 'GET', '/v1/views', { headers: member });
    return (answer.json?.['data'] as Shown[]).map(({ name }) => name);
  };
  await eventually(async () => (await there()).join() === 'a,b,c', { what: 'the views at the other process' });
});

it.each([
  [{ name: '' }, 'name'],
  [{ name: 'x'.repeat(101) }, 'name'],
  [{ page: 'Traces!' }, 'page: must be lower-case letters'],
  [{ query: '?a=1' }, 'query: must be a URL query'],
  [{ query: 'a=1#b' }, 'query: must be a URL query'],
  [{ query: 'x'.repeat(4097) }, 'query'],
  [{ scope: 'world' }, 'scope'],
  [{ colour: 'red' }, 'colour'],
])('a view of %j is rejected with the field named', async (fields, detail) => {
  const answer = await tenant.call('POST', '/v1/views', { body: view(fields) });
  expect([answer.status, String(answer.json?.['detail'])]).toEqual([422, expect.stringContaining(detail)]);
});

it('a maker, and an organization, can have a bounded number of views', async () => {
  const bucket = await api.log.bucket('views');
  const at = new Date(0).toISOString();
  const put = async (n: number, made_by: string) => {
    const view_id = `view_${made_by}_${n}`;
    const record: ViewRecord = {
      org_id: tenant.org,
      view_id,
      name: 'n',
      page: 'traces',
      query: '',
      scope: 'private',
      maker_kind: 'user',
      made_by,
      created_at: at,
      updated_at: at,
    };
    await bucket.put(viewKey(tenant.org, view_id), JSON.stringify(record));
  };
  const owner = `u_${tenant.org}`;
  await Promise.all(Array.from({ length: VIEWS_MAKER_MAX }, (_, n) => put(n, owner)));
  const tryAs = async (as: Caller) => tenant.call('POST', '/v1/views', { headers: as, body: view() });
  await eventually(async () => (await names(tenant.owner)).length === 50);
  await eventually(async () => (await tryAs(tenant.owner)).status === 409, { what: 'the bound of a maker' });
  await create(admin);
  await Promise.all(Array.from({ length: VIEWS_ORG_MAX - VIEWS_MAKER_MAX }, (_, n) => put(n, `u${n}`)));
  await eventually(async () => (await tryAs(admin)).status === 409, { what: 'the bound of an organization' });
  expect((await tryAs(admin)).json?.['detail']).toContain(`${VIEWS_ORG_MAX} views`);
});
