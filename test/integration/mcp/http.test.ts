// The edge of the MCP server: credentials, origins, methods, bounds and the metadata for sign-in.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startOidc, type TestOidc } from '../../support/oidc.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { connect } from './a_client.ts';

const ISSUER = 'https://login.example.com';
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

let nats: TestNats;
let oidc: TestOidc;
let api: TestApi;
let provided: TestApi;
let tenant: Tenant;
beforeAll(async () => {
  nats = await startTestNats();
  oidc = await startOidc('ES256');
  api = await startTestApi({ natsUrl: nats.url, corsOrigins: ['https://app.example.com'] });
  provided = await startTestApi({ natsUrl: nats.url, provider: { jwksUrl: oidc.jwksUrl, issuer: ISSUER } });
  tenant = await aTenant({ api });
});
afterAll(async () => {
  await api.close();
  await provided.close();
  await oidc.stop();
  await nats.remove();
});

const post = (headers: Record<string, string | undefined>, body: unknown = INITIALIZE, at = api): Promise<Response> =>
  fetch(`${at.url}/mcp`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const codeOf = async (response: Response): Promise<unknown> => ((await response.json()) as { code: string }).code;

describe('credentials', () => {
  it('takes a key as X-Org-Api-Key and as Bearer', async () => {
    const raw = tenant.key['X-Org-Api-Key'];
    for (const headers of [tenant.key, { Authorization: `Bearer ${raw}` }]) {
      const answer = await post(headers);
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"name":"millrace"')]);
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    }
  });

  it("takes a person's token, with the organization in X-Org-Id or in the address", async () => {
    const { Authorization = '' } = tenant.owner;
    expect((await post(tenant.owner)).status).toBe(200);
    const byAddress = await fetch(`${api.url}/mcp?org_id=${tenant.org}`, {
      method: 'POST',
      headers: { Authorization, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
      body: JSON.stringify(INITIALIZE),
    });
    expect(byAddress.status).toBe(200);
    const nowhere = await post({ Authorization });
    expect([nowhere.status, ((await nowhere.json()) as { detail: string }).detail]).toEqual([
      422,
      'X-Org-Id: is needed with a token, or ?org_id= in the address',
    ]);
    const client = await connect(api, tenant.owner);
    expect((await client.tools()).map(({ name }) => name)).toContain('search_traces');
    await client.close();
  });

  it('answers 401 with WWW-Authenticate, which names the metadata where a provider is configured', async () => {
    const [plain, withProvider] = [await post({}), await post({}, INITIALIZE, provided)];
    expect([plain.status, plain.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="service"']);
    expect([withProvider.status, withProvider.headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer resource_metadata="${provided.url}/.well-known/oauth-protected-resource/mcp"`,
    ]);
    expect(await (await fetch(`${provided.url}/.well-known/oauth-protected-resource/mcp`)).json()).toEqual({
      resource: `${provided.url}/mcp`,
      authorization_servers: [ISSUER],
      scopes_supported: ['openid', 'email'],
      bearer_methods_supported: ['header'],
      resource_name: 'Millrace',
    });
    expect((await fetch(`${api.url}/.well-known/oauth-protected-resource/mcp`)).status).toBe(404);
  });

  it('answers 403 for X-Org-Id of another organization', async () => {
    const answer = await post({ ...tenant.key, 'X-Org-Id': 'org_other' });
    expect([answer.status, await codeOf(answer)]).toEqual([403, 'cross_org_access']);
  });
});

describe('requests', () => {
  it.each([
    ['https://evil.example', 403],
    ['null', 403],
    ['https://app.example.com', 200],
    ['http://localhost:5173', 200],
  ])('from the origin %s get %i', async (Origin, status) => {
    expect((await post({ ...tenant.key, Origin })).status).toBe(status);
  });

  it('other than POST get 405', async () => {
    const headers = tenant.key as Record<string, string>;
    for (const method of ['GET', 'DELETE']) {
      const answer = await fetch(`${api.url}/mcp`, { method, headers });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  it('that are no JSON, too large, or of an unknown method are refused', async () => {
    expect((await post(tenant.key, '{')).status).toBe(400);
    expect((await post(tenant.key, JSON.stringify('x'.repeat(5_000_000)))).status).toBe(413);
    const unknown = await post(tenant.key, { jsonrpc: '2.0', id: 1, method: 'nonsense' });
    expect(await unknown.text()).toContain('-32601');
  });
});
