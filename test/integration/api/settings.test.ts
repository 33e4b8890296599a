// What the settings of the portal read beside the records that they change: the permissions, the rate
// limits in force, and a text redacted by a PII policy before it is saved.
import { expect, test } from 'vitest';
import { call } from './an_api.ts';
import { as, dataOf, join, one, operator, org, said, send } from './members_of_an_org.ts';

interface Item {
  permission: string;
  description: string;
  roles: string[];
  scope: string | null;
  grantable_on: string[];
}

test('the permissions name roles, the scope of a key and the resources they can be granted on', async () => {
  const answer = await send('ann', 'GET', '/permissions');
  expect(answer.status).toBe(200);
  const items = answer.json?.['data'] as Item[];
  const of = (name: string): Item | undefined => items.find(({ permission }) => permission === name);
  expect(of('traces:read')).toMatchObject({
    roles: ['member', 'admin', 'owner'],
    scope: 'traces:read',
    grantable_on: ['trace'],
  });
  expect(of('judges:run')).toMatchObject({ scope: 'judges:write', grantable_on: ['judge', 'dataset'] });
  expect(of('gdpr:execute')).toMatchObject({ roles: ['owner'], scope: null, grantable_on: [] });
  expect(of('org:read')?.roles).toEqual(['viewer', 'member', 'admin', 'owner']);
  expect(items.filter(({ description }) => description.length < 10)).toEqual([]);
});

test('the organization shows the rate limits in force to those who may view billing', async () => {
  const change = (body: unknown) => call(one, 'PATCH', `/admin/orgs/${org}`, { body, headers: operator });
  const shown = async () => dataOf(await send('ann', 'GET', ''));
  await change({ plan_name: 'starter' });
  expect(await shown()).toMatchObject({
    plan_name: 'starter',
    effective_rate_limits: { ingest_per_minute: 300, api_per_minute: 300, burst: 60 },
  });
  const own = { ingest_per_minute: 7000, api_per_minute: 6000, burst: 500 };
  await change({ plan_name: 'enterprise', rate_limits: own });
  expect(await shown()).toMatchObject({ rate_limits: own, effective_rate_limits: own });
  await change({ rate_limits: null });
  expect(await shown()).toMatchObject({ rate_limits: null, effective_rate_limits: null });
  await join('bob', 'member');
  expect(dataOf(await send('bob', 'GET', ''))).not.toHaveProperty('effective_rate_limits');
});

test('a PII policy is tried on a text before it is saved, and nothing is stored', async () => {
  const before = dataOf(await send('ann', 'GET', '/pii-policy'));
  const text = 'Write to ann@example.com about EMP-123456 from 10.1.2.3';
  const tried = await send('ann', 'POST', '/pii-policy/test', {
    text,
    policy: { kinds: ['email'], custom: [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }], mode: 'hash' },
  });
  expect(dataOf(tried)).toEqual({
    text: 'Write to [EMAIL] about [EMPLOYEE] from 10.1.2.3',
    found: ['EMPLOYEE', 'email'],
  });
  expect(dataOf(await send('ann', 'GET', '/pii-policy'))).toEqual(before);

  // Without a draft the stored policy counts, although it is not enabled.
  const stored = await send('ann', 'POST', '/pii-policy/test', { text });
  expect(dataOf(stored)).toMatchObject({ text: 'Write to [EMAIL] about EMP-123456 from [IP]' });

  const refused = await send('ann', 'POST', '/pii-policy/test', {
    text,
    policy: { custom: [{ label: 'BAD', pattern: '(' }] },
  });
  expect(said(refused)).toEqual([422, 'invalid_request']);
  expect(refused.json?.['detail']).toMatch(/^policy\.custom\[0\]\.pattern: /);
  const long = await call(one, 'POST', `/orgs/${org}/pii-policy/test`, {
    headers: await as('ann'),
    body: { text: 'a'.repeat(20_001) },
  });
  expect(long.json?.['detail']).toBe('text: must have at most 20000 characters');
  await join('bob', 'member');
  expect(said(await send('bob', 'POST', '/pii-policy/test', { text }))).toEqual([403, 'forbidden']);
});
