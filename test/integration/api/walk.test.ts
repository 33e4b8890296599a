// Calls every operation of a real API's own OpenAPI document as every kind of caller and compares
// the outcome with the contract's table. Also checks that no answer reveals one organization's
// resources to another.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../../api/http/permissions.ts';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { confirmed } from '../../support/wait.ts';
import {
  asKey,
  type Headers,
  makeKey,
  makeMember,
  makeOtherOrg,
  type Operation,
  operationsOf,
  OTHER_ORG,
  OWNER,
  pathOf,
  type Things,
} from './a_cast.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';
import { CONTRACT, CONTRACT_SCOPES, type OrgRule, RANKS, type Rule } from './contract_access.ts';

let nats: TestNats;
/** Upstream of the gateway. */
let models: ModelServer;
let store: TestStore;
let api: TestApi;
let operations: Operation[];
let other: Things & { owner: Headers; raw: string };
const tokens = new Map<Role | 'stranger', string>();
const keys = new Map<string, string>();

beforeAll(async () => {
  nats = await startTestNats();
  models = await startModelServer();
  store = await openTestStore();
  api = await startTestApi({
    natsUrl: nats.url,
    clickhouseUrl: store.database.url,
    llmUrl: models.url,
    anthropicUrl: models.url,
  });
  operations = await operationsOf(api);
  tokens.set('owner', await tokenOf({ sub: OWNER }));
  for (const role of ['viewer', 'member', 'admin'] as const) tokens.set(role, (await makeMember(api, role)).token);
  tokens.set('stranger', await tokenOf({ sub: 'user_stranger', email: 'stranger@example.com' }));
  keys.set('*', (await makeKey(api, ['*'])).raw);
  for (const scope of CONTRACT_SCOPES) {
    keys.set(scope, (await makeKey(api, [scope])).raw);
    keys.set(
      `all but ${scope}`,
      (
        await makeKey(
          api,
          CONTRACT_SCOPES.filter((name) => name !== scope),
        )
      ).raw,
    );
  }
  other = await makeOtherOrg(api);
  const spans = [aSpan({ org_id: OTHER_ORG, trace_id: other.trace_id })];
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
});

afterAll(async () => {
  await api.close();
  await models.close();
  await store.close();
  await nats.remove();
});

type Verdict = 'allowed' | '401' | '403';
const isOrgRule = (rule: Rule): rule is OrgRule => typeof rule !== 'string';
const tokenFor = (who: Role | 'stranger'): string => tokens.get(who) ?? '';
const keyFor = (name: string): string => keys.get(name) ?? '';
const NOTHING: Headers = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };

interface Caller {
  name: string;
  headers: Headers;
  /** Organization of the path, if it is not the tests' own. */
  org?: string;
  expected: Verdict;
}

/** Returns the contract's code of an error. The gateway puts it inside `error`. */
const codeOf = (json: Answer['json']): unknown =>
  (json?.['error'] as { code: string } | undefined)?.code ?? json?.['code'];

function verdictOf({ status, json }: Answer): Verdict {
  if (status === 401) return '401';
  // Anthropic's format has types in place of codes.
  const type = (json?.['error'] as { type?: unknown } | undefined)?.type;
  if (status === 403 && type === 'permission_error') return '403';
  // The handler itself answers 403 with another code to an admitted caller, for example for an
  // invalid register token.
  return status === 403 && ['forbidden', 'cross_org_access'].includes(String(codeOf(json))) ? '403' : 'allowed';
}

/**
 * Returns every kind of caller of an operation with this rule, with the outcome that the contract
 * defines.
 */
async function callersOf(rule: Rule, hasOrgInPath: boolean): Promise<Caller[]> {
  const open = rule === 'public';
  const callers: Caller[] = [
    { name: 'nobody', headers: NOTHING, expected: open ? 'allowed' : '401' },
    { name: 'a made-up key', headers: asKey('sk_svc_madeupmadeupmadeup'), expected: open ? 'allowed' : '401' },
    {
      name: 'a made-up token',
      headers: { ...NOTHING, Authorization: 'Bearer a.b.c' },
      expected: open ? 'allowed' : '401',
    },
    {
      name: 'an expired token',
      headers: asUser(await tokenOf({ sub: OWNER, exp: Math.floor(Date.now() / 1000) - 3600 })),
      expected: open ? 'allowed' : '401',
    },
    {
      name: "a token of another issuer's secret",
      headers: asUser(await tokenOf({ sub: OWNER }, 'another-secret-of-the-tests-0123456789')),
      expected: open ? 'allowed' : '401',
    },
    {
      name: 'the operator',
      headers: { ...NOTHING, Authorization: `Bearer ${ADMIN_TOKEN}` },
      expected: open || rule === 'operator' ? 'allowed' : '401',
    },
    {
      name: 'a key of every scope',
      headers: asKey(keyFor('*')),
      expected: open || (isOrgRule(rule) && rule[1] !== null) ? 'allowed' : '403',
    },
  ];
  for (const role of RANKS) {
    const expected = isOrgRule(rule)
      ? RANKS.indexOf(role) >= RANKS.indexOf(rule[0])
        ? 'allowed'
        : '403'
      : rule === 'operator'
        ? '401'
        : 'allowed';
    callers.push({ name: `the ${role}`, headers: asUser(tokenFor(role)), expected });
  }
  callers.push({
    name: 'a person who is no member',
    headers: asUser(tokenFor('stranger')),
    expected: isOrgRule(rule) ? '403' : rule === 'operator' ? '401' : 'allowed',
  });
  if (!isOrgRule(rule)) return callers;
  const scope = rule[1];
  if (scope !== null) {
    callers.push({ name: `a key of ${scope} alone`, headers: asKey(keyFor(scope)), expected: 'allowed' });
    callers.push({
      name: `the same key as bearer`,
      headers: { ...NOTHING, Authorization: `Bearer ${keyFor(scope)}`, 'X-Org-Id': ORG },
      expected: 'allowed',
    });
    callers.push({ name: `a key of all but ${scope}`, headers: asKey(keyFor(`all but ${scope}`)), expected: '403' });
  }
  callers.push({ name: 'our key, naming another org', headers: asKey(keyFor('*'), OTHER_ORG), expected: '403' });
  callers.push({ name: "another org's key, naming ours", headers: asKey(other.raw), expected: '403' });
  callers.push({
    name: "another org's owner, naming ours",
    headers: { ...other.owner, 'X-Org-Id': ORG },
    expected: '403',
  });
  for (const org of hasOrgInPath ? [OTHER_ORG, 'org_that_is_not'] : []) {
    callers.push({ name: `our key, at ${org}`, headers: asKey(keyFor('*')), org, expected: '403' });
    callers.push({ name: `our owner, at ${org}`, headers: asUser(tokenFor('owner')), org, expected: '403' });
    callers.push({
      name: `our owner, at and naming ${org}`,
      headers: asUser(tokenFor('owner'), org),
      org,
      expected: '403',
    });
  }
  return callers;
}

/**
 * Callers that are admitted and then rejected by the handler with the code of a missing permission.
 */
const REFUSED_LATER: Readonly<Record<string, readonly string[]>> = {
  'POST /orgs/{org_id}/transfer/accept': ['a person who is no member'],
  // A key invites only to roles whose permissions it has.
  'POST /orgs/{org_id}/members': ['a key of org:write alone', 'the same key as bearer'],
};

/** Bodies for operations whose handler would reject the example. */
const BODIES: Readonly<Record<string, unknown>> = {
  // A key can grant only scopes that it has.
  'POST /orgs/{org_id}/api-keys': { name: 'walk', scopes: ['org:write'] },
};

/** Queries of operations that require one. */
const QUERIES: Readonly<Record<string, string>> = { 'GET /v1/traces/{trace_id}/matches': '?q=word' };

async function ask(operation: Operation, values: Record<string, string>, headers: Headers): Promise<Answer> {
  const body = BODIES[operation.name] ?? operation.body;
  const path = pathOf(operation.template, { text: 'prompt', ...values });
  return call(api, operation.method, `${path}${QUERIES[operation.name] ?? ''}`, {
    headers,
    ...(body === undefined ? {} : { body }),
  });
}

test('the document and the access table name the same operations', () => {
  const named = operations.map(({ name }) => name);
  expect(named.filter((name) => CONTRACT[name] === undefined)).toEqual([]);
  expect(Object.keys(CONTRACT).filter((name) => !named.includes(name))).toEqual([]);
});

test('every operation documents who may call it, and every operation but GET what the audit log records', () => {
  expect(operations.filter(({ access }) => typeof access !== 'string').map(({ name }) => name)).toEqual([]);
  const silent = operations
    .filter(({ method, audit }) => method !== 'GET' && audit === undefined)
    .map(({ name }) => name);
  expect(silent.filter((name) => !name.includes('/ingest/'))).toEqual([]);
});

test('every caller at every operation gets what the contract says', async () => {
  const wrong: string[] = [];
  let asked = 0;
  for (const operation of operations) {
    const rule = CONTRACT[operation.name];
    if (rule === undefined) continue;
    for (const { name, headers, org, expected } of await callersOf(rule, operation.template.includes('{org_id}'))) {
      const once = () => ask(operation, { org_id: org ?? ORG }, headers);
      const isAway =
        /^\/(admin\/(jobs|reprice)|v1\/judges\/preview)/.test(operation.template) || operation.template === '/readyz';
      const answer = await (isAway ? once() : confirmed(once));
      asked++;
      const got = verdictOf(answer);
      if (got !== (REFUSED_LATER[operation.name]?.includes(name) === true ? '403' : expected))
        wrong.push(`${operation.name} by ${name}: ${answer.status} ${answer.text}, not ${expected}`);
      if (
        answer.status === 403 &&
        expected === '403' &&
        isOrgRule(rule) &&
        /role|scope/.test(String(answer.json?.['detail']))
      )
        expect(answer.json?.['detail']).toMatch(/permission [a-z_]+:[a-z_]+/);
      if (answer.status >= 500 && !isAway) wrong.push(`${operation.name} by ${name}: ${answer.status} ${answer.text}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(asked).toBeGreaterThan(operations.length * 10);
});

describe('what another org has', () => {
  /** Returns the status, code and detail of an answer, without the ids that were requested. */
  const told = ({ status, json }: Answer, values: Record<string, string>): string => {
    let detail = String(json?.['detail']);
    for (const value of Object.values(values)) detail = detail.replaceAll(value, '…');
    return `${status} ${String(json?.['code'])} ${detail}`;
  };

  test('an existing organization and a missing one look the same to a stranger', async () => {
    const wrong: string[] = [];
    for (const operation of operations.filter(
      ({ template, access }) => template.includes('{org_id}') && access !== 'operator',
    )) {
      for (const as of [
        asKey(keyFor('*')),
        asUser(tokenFor('owner')),
        asUser(tokenFor('stranger'), OTHER_ORG),
        asUser(tokenFor('stranger'), 'org_that_is_not'),
      ]) {
        const [there, not] = [{ org_id: OTHER_ORG }, { org_id: 'org_that_is_not' }];
        const named = as['X-Org-Id'] === ORG ? {} : { 'X-Org-Id': undefined };
        const [a, b] = [
          await ask(operation, there, { ...as, ...named }),
          await ask(operation, not, { ...as, ...named }),
        ];
        if (told(a, there) !== told(b, not)) wrong.push(`${operation.name}: ${told(a, there)} | ${told(b, not)}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a thing of another organization and a missing one look the same', async () => {
    const wrong: string[] = [];
    let pairs = 0;
    for (const operation of operations) {
      const names = [...operation.template.matchAll(/\{([a-z_]+)\}/g)]
        .map(([, name]) => name ?? '')
        .filter((name) => name !== 'org_id');
      // trace_id is excluded: the contract requires the API to say that a trace belongs to another
      // organization.
      const known = names.filter((name) => name in other && name !== 'trace_id');
      if (known.length === 0 || !Array.isArray(CONTRACT[operation.name])) continue;
      for (const as of [asKey(keyFor('*')), asUser(tokenFor('owner'))]) {
        const theirs = { org_id: ORG, ...Object.fromEntries(known.map((name) => [name, other[name as keyof Things]])) };
        const nobodys = { org_id: ORG, ...Object.fromEntries(known.map((name) => [name, `no_such_${name}`])) };
        const [a, b] = [await ask(operation, theirs, as), await ask(operation, nobodys, as)];
        pairs++;
        if (told(a, theirs) !== told(b, nobodys))
          wrong.push(`${operation.name}: ${told(a, theirs)} | ${told(b, nobodys)}`);
      }
    }
    expect(pairs).toBeGreaterThan(0);
    expect(wrong).toEqual([]);
  });

  test('a trace that only another organization has is 403, a missing one 404', async () => {
    for (const operation of operations.filter(({ template }) => template.includes('{trace_id}'))) {
      const as = asKey(keyFor('*'));
      const theirs = await ask(operation, { trace_id: other.trace_id }, as);
      const nobodys = await ask(operation, { trace_id: 'trc_nobody' }, as);
      expect([theirs.status, theirs.json?.['code']]).toEqual([403, 'cross_org_access']);
      expect([nobodys.status, nobodys.json?.['code']]).toEqual([404, 'trace_not_found']);
    }
  });

  test('the walk of a stranger changed nothing of the organization', async () => {
    const read = async (path: string) => (await call(api, 'GET', path, { headers: other.owner })).json?.['data'];
    expect(await read(`/orgs/${OTHER_ORG}/agents/${other.agent_id}`)).toMatchObject({ agent_id: other.agent_id });
    expect(await read(`/orgs/${OTHER_ORG}/grants`)).toHaveLength(1);
    expect(await read(`/orgs/${OTHER_ORG}/members`)).toHaveLength(2);
    expect((await call(api, 'GET', `/orgs/${OTHER_ORG}`, { headers: asKey(other.raw, OTHER_ORG) })).status).toBe(200);
  });
});
