// Query parameters of every operation in the OpenAPI document. Documented parameters are accepted;
// any other is rejected with the name of the nearest parameter that the operation accepts.
// Endpoints whose clients add parameters of their own ignore unknown ones.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Operation, operationsOf, pathOf } from './a_cast.ts';
import {
  ADMIN_TOKEN,
  type Answer,
  anEvent,
  asUser,
  call,
  INGEST,
  ORG,
  startTestApi,
  type TestApi,
  tokenOf,
} from './an_api.ts';

/**
 * Operations that ignore unknown parameters: those of other protocols, and those that probes and
 * scrapers call. An identity provider adds parameters of its own to the callback of a login.
 */
const LENIENT =
  /^(POST \/v1\/(otlp\/v1\/)?(traces|logs|metrics)|(POST|GET) \/v1\/(chat\/completions|responses|embeddings|messages(\/count_tokens)?|models(\/\{model\})?)|\w+ \/(api\/public|langsmith|\.well-known)\/.*|GET \/v1\/session\/oidc\/callback|GET \/(healthz|readyz|metrics|openapi\.json|docs(\/\{section\}\/\{page\})?))$/;

let nats: TestNats;
let models: ModelServer;
let api: TestApi;
let operations: Operation[];
let owner: string;

beforeAll(async () => {
  nats = await startTestNats();
  models = await startModelServer();
  // This API has no ClickHouse, because it checks parameters before it queries ClickHouse.
  api = await startTestApi({ natsUrl: nats.url, llmUrl: models.url });
  operations = await operationsOf(api);
  owner = await tokenOf({ sub: 'user_local', email: 'owner@example.com' });
});
afterAll(async () => {
  await api.close();
  await models.close();
  await nats.remove();
});

async function ask({ method, template, access, body }: Operation, query: string): Promise<Answer> {
  const headers =
    access === 'operator'
      ? { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` }
      : asUser(owner);
  const url = `${pathOf(template, { org_id: ORG })}?${query}`;
  return call(api, method, url, { headers, ...(method === 'GET' || body === undefined ? {} : { body }) });
}

const detailOf = ({ json }: Answer): string => String(json?.['detail']);

test('every operation of the service rejects a parameter that it does not declare, and names it', async () => {
  const own = operations.filter(({ name }) => !LENIENT.test(name));
  expect(own.length).toBeGreaterThan(60);
  for (const operation of own) {
    const answer = await ask(operation, 'no_such_parameter=1');
    expect([operation.name, answer.status, answer.json?.['code'], detailOf(answer)]).toEqual([
      operation.name,
      422,
      'invalid_request',
      expect.stringMatching(/^unknown query parameter no_such_parameter; /) as string,
    ]);
  }
});

test('every documented parameter is accepted, and a misspelled one is answered with its name', async () => {
  const documented = operations.filter(({ name, query }) => !LENIENT.test(name) && query.length > 0);
  expect(documented.length).toBeGreaterThan(20);
  for (const operation of documented) {
    for (const { name } of operation.query) {
      expect([operation.name, name, detailOf(await ask(operation, `${name}=1`))]).toEqual([
        operation.name,
        name,
        expect.not.stringContaining('unknown query parameter') as string,
      ]);
      const misspelt = `${name.replaceAll('_', '')}X`;
      expect([operation.name, detailOf(await ask(operation, `${misspelt}=1`))]).toEqual([
        operation.name,
        expect.stringContaining(`unknown query parameter ${misspelt}; did you mean `) as string,
      ]);
    }
  }
});

test('the parameters of the contract are documented', () => {
  const documented = Object.fromEntries(operations.map(({ name, query }) => [name, query.map((one) => one.name)]));
  const contract: Record<string, string[]> = {
    'GET /v1/traces':
      'limit offset cursor agent_id outcome min_duration_ms max_duration_ms since until search tags session_id user_id root_span_name model source_format department realm min_cost_usd max_cost_usd min_tokens max_tokens judge_id verdict score prompt_name prompt_version sampled scored trace_ids not_agent_id not_outcome not_model not_tags sort attributes.<path>'.split(
        ' ',
      ),
    'GET /v1/spans/search': 'q model outcome min_cost_usd max_cost_usd since limit'.split(' '),
    'GET /v1/cost/summary': ['days', 'group_by'],
    'GET /v1/cost/forecast': ['days'],
    'GET /orgs/{org_id}/cost/forecast': ['days'],
    'GET /v1/judges': ['name', 'kind', 'enabled'],
    'GET /orgs/{org_id}/agents': ['framework', 'name', 'limit', 'offset', 'archived'],
    'GET /orgs/{org_id}/audit-log': ['action', 'actor_id', 'since', 'until', 'limit', 'cursor'],
    'GET /v1/scores': ['trace_id'],
    'POST /orgs/{org_id}/ingest/app': ['api_key'],
  };
  for (const [name, names] of Object.entries(contract))
    expect([name, documented[name]]).toEqual([name, expect.arrayContaining(names)]);
});

test('a single-valued parameter is rejected when repeated; a list may be repeated', async () => {
  const twice = await call(api, 'GET', '/v1/traces?agent_id=a&agent_id=b');
  expect([twice.status, twice.json?.['code'], detailOf(twice)]).toEqual([
    422,
    'invalid_request',
    'agent_id: may be given only once',
  ]);
  const list = await call(api, 'GET', '/v1/traces?tags=a&tags=b,c');
  expect(list.status).not.toBe(422);
});

test('filters by attributes are accepted by any path, and a misspelled one is answered with its name', async () => {
  for (const query of ['attributes.region=eu', 'attributes.service.name=a&attributes.region=b,c'])
    expect([query, (await call(api, 'GET', `/v1/traces?${query}`)).status]).not.toEqual([query, 422]);
  for (const path of ['/v1/traces', '/v1/traces/facets', '/v1/traces/series'])
    expect(detailOf(await call(api, 'GET', `${path}?attribute.region=eu`))).toBe(
      'unknown query parameter attribute.region; did you mean attributes.region?',
    );
  const tooMany = Array.from({ length: 6 }, (_, n) => `attributes.a${n}=1`).join('&');
  expect(detailOf(await call(api, 'GET', `/v1/traces?${tooMany}`))).toBe(
    'attributes.<path>: must be at most 5 attributes',
  );
});

test('endpoints of other protocols, and probes, ignore unknown parameters', async () => {
  for (const path of [
    '/healthz?x=1',
    '/openapi.json?v=2',
    '/docs?x',
    '/metrics?x=1',
    '/readyz?x=1',
    '/v1/models?limit=20',
  ])
    expect([path, (await call(api, 'GET', path)).status]).not.toEqual([path, 422]);
  expect((await call(api, 'POST', '/v1/traces?x=1', { body: {} })).status).toBe(200);
  expect((await call(api, 'POST', '/v1/otlp/v1/traces?x=1', { body: {} })).status).toBe(200);
});

test('ingest stores nothing from a request with an unknown parameter', async () => {
  for (const [format, query] of [
    ['custom', 'debug=1'],
    ['custom', 'api_key=sk_svc_testkeytestkeytestkey'],
    ['app', 'apikey=x'],
  ] as const) {
    const answer = await call(api, 'POST', `${INGEST}/${format}?${query}`, { body: { events: [anEvent()] } });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(detailOf(answer)).toMatch(
      /^unknown query parameter (debug|api_key); this endpoint accepts none$|; did you mean api_key\?$/,
    );
    expect(answer.text).not.toContain('sk_svc_');
  }
});
