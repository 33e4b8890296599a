// An organization with a budget: created through the operator's endpoints, it sends model calls of
// known use.
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, type TestApi, tokenOf } from '../api/an_api.ts';
import { anAccount } from '../a_tenant.ts';

export const ADMIN = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };

export interface BudgetAnswer {
  period: string;
  period_start: string;
  period_end: string;
  total_cost_usd: number;
  tokens: Amount;
  storage_mb: Amount;
  sandbox_seconds: Amount;
  cost_usd: Amount;
}
export interface Amount {
  used: number;
  soft_limit: number | null;
  hard_limit: number | null;
  percentage: number;
  status: string;
}

export interface SendOptions {
  agent_id?: string;
  attributes?: Record<string, unknown>;
  headers?: Record<string, string>;
  /**
   * Text of the question. The same text makes the same event; without it each call is a new event.
   */
  question?: string;
}

/** The part of a test API that these helpers use. */
export type ApiAddress = Pick<TestApi, 'url'>;

let orgs = 0;
let questions = 0;

/** Returns the body of a model call of `tokens` tokens. */
export function modelCall(
  tokens: number,
  { agent_id, attributes = {}, question }: SendOptions = {},
): Record<string, unknown> {
  questions++;
  return {
    request: { model: 'gpt-4o', messages: [{ role: 'user', content: question ?? `question ${questions}` }] },
    response: {
      model: 'gpt-4o',
      choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
    },
    duration_ms: 5,
    outcome: 'success',
    attributes: { ...(agent_id === undefined ? {} : { agent_id }), ...attributes },
  };
}

export class TestOrg {
  readonly id: string;
  readonly #key: string;

  private constructor(id: string, key: string) {
    this.id = id;
    this.#key = key;
  }

  /** Creates an organization, and resolves once every API knows its key. */
  static async make(apis: readonly ApiAddress[], more: Record<string, unknown> = {}): Promise<TestOrg> {
    const [first] = apis;
    if (first === undefined) throw new Error('an org is made through an API');
    const { org: id, key } = await anAccount({ api: first }, { org: `org_b${process.pid}_${++orgs}`, fields: more });
    const org = new TestOrg(id, String(key['X-Org-Api-Key']));
    for (const api of apis)
      await eventually(async () => (await org.call(api, 'GET', `/orgs/${id}`)).status === 200, { what: 'the key' });
    return org;
  }

  call(
    api: ApiAddress,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const all = { 'X-Org-Api-Key': this.#key, 'X-Org-Id': this.id, ...headers };
    return call(api, method, path, { headers: all, ...(body === undefined ? {} : { body }) });
  }

  /** Returns the URL and headers with which another client calls the API as this organization. */
  request(api: ApiAddress, path: string): { url: string; headers: Record<string, string> } {
    return { url: api.url + path, headers: { 'X-Org-Api-Key': this.#key, 'X-Org-Id': this.id } };
  }

  send(api: ApiAddress, tokens: number, options: SendOptions = {}): Promise<Answer> {
    return this.ingest(api, 'chatcompletion', modelCall(tokens, options), options.headers);
  }

  ingest(api: ApiAddress, format: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call(api, 'POST', `/orgs/${this.id}/ingest/${format}`, body, headers);
  }

  async budget(api: ApiAddress): Promise<BudgetAnswer> {
    const answer = await this.call(api, 'GET', '/v1/budgets');
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.json?.['data'] as BudgetAnswer;
  }

  /** Sets limits, and resolves once every API knows them. */
  async limit(apis: readonly ApiAddress[], limits: Record<string, unknown>): Promise<void> {
    const [first] = apis;
    if (first === undefined) throw new Error('a limit is set through an API');
    const answer = await this.call(first, 'PUT', `/orgs/${this.id}/budget`, limits);
    if (answer.status !== 200) throw new Error(answer.text);
    const set = JSON.stringify(limitsIn(answer.json?.['data'] as BudgetAnswer));
    for (const api of apis)
      await eventually(async () => JSON.stringify(limitsIn(await this.budget(api))) === set, { what: 'the limit' });
  }

  async limitAgent(
    api: ApiAddress,
    agent_id: string,
    limits: Record<string, unknown>,
    resource: 'tokens' | 'cost_usd' = 'tokens',
  ): Promise<Answer> {
    return this.call(api, 'POST', `/orgs/${this.id}/budget/agents`, { agent_id, [resource]: limits });
  }

  /**
   * Sets the policy, as the owner.
   * @param now the API's clock, in milliseconds
   */
  async policy(api: ApiAddress, body: unknown, now = Date.now()): Promise<void> {
    const iat = Math.floor(now / 1000) - 10;
    const token = await tokenOf({ sub: `u_${this.id}`, email: `${this.id}@example.com`, iat, exp: iat + 3600 });
    const answer = await call(api, 'PUT', `/orgs/${this.id}/policy`, { headers: asUser(token, this.id), body });
    if (answer.status !== 200) throw new Error(answer.text);
  }

  landed(api: ApiAddress, tokens: number): Promise<void> {
    return eventually(async () => (await this.budget(api)).tokens.used >= tokens, {
      what: `${tokens} tokens landed`,
      withinMs: 30_000,
    });
  }
}

const limitsIn = ({ tokens, storage_mb, sandbox_seconds, cost_usd }: BudgetAnswer): unknown[] =>
  [tokens, storage_mb, sandbox_seconds, cost_usd].map(({ soft_limit, hard_limit }) => [soft_limit, hard_limit]);

/** Returns the status and the error code of an answer, separated by a space. */
export const code = (answer: Answer): string => `${answer.status} ${(answer.json?.['code'] ?? '') as string}`.trim();

/** Returns the number of questions near a limit that deciders did not answer in time, as these processes count it. */
export async function lateAnswers(apis: readonly ApiAddress[]): Promise<number> {
  const texts = await Promise.all(apis.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
  return texts.reduce(
    (sum, text) => sum + Number(/^millrace_budget_late_answers_total\S* (\d+)$/m.exec(text)?.[1] ?? NaN),
    0,
  );
}
