// An API key with limits, in an organization of its own.
import { eventually } from '../../support/wait.ts';
import { type ApiAddress, modelCall, type SendOptions, TestOrg } from '../budgets/a_budget.ts';
import { type Answer, call } from '../api/an_api.ts';

export interface KeyUse {
  period: string;
  tokens: number;
  cost_usd: number;
  percentage: number;
  status: string;
}
export interface ListedKey {
  id: string;
  status: string;
  use: KeyUse | null;
  [limit: string]: unknown;
}

export class LimitedKey {
  readonly org: TestOrg;
  readonly id: string;
  readonly raw: string;

  private constructor(org: TestOrg, id: string, raw: string) {
    this.org = org;
    this.id = id;
    this.raw = raw;
  }

  /** Creates a key, and resolves once every API knows its limits. */
  static async make(
    apis: readonly ApiAddress[],
    limits: Record<string, unknown> = {},
    { org, scopes = ['*'] }: { org?: TestOrg; scopes?: string[] } = {},
  ): Promise<LimitedKey> {
    const [first] = apis;
    if (first === undefined) throw new Error('a key is made through an API');
    const of = org ?? (await TestOrg.make(apis));
    const made = await of.call(first, 'POST', `/orgs/${of.id}/api-keys`, { name: 'limited', scopes, ...limits });
    if (made.status !== 201) throw new Error(made.text);
    const key = new LimitedKey(of, String(made.json?.['id']), String(made.json?.['raw_key']));
    for (const api of apis)
      await eventually(async () => (await key.listed(api)) !== undefined, { what: 'the key in every process' });
    return key;
  }

  /** Changes limits; resolves once every API shows them. */
  async limit(apis: readonly ApiAddress[], limits: Record<string, unknown>): Promise<Answer> {
    const [first] = apis;
    if (first === undefined) throw new Error('a key is limited through an API');
    const answer = await this.org.call(first, 'PATCH', `/orgs/${this.org.id}/api-keys/${this.id}`, limits);
    const shown = (of: ListedKey | undefined) => JSON.stringify(Object.keys(limits).map((name) => of?.[name]));
    if (answer.status === 200)
      for (const api of apis)
        await eventually(async () => shown(await this.listed(api)) === shown(answer.json?.['data'] as ListedKey), {
          what: 'the limits in every process',
        });
    return answer;
  }

  async listed(api: ApiAddress): Promise<ListedKey | undefined> {
    const answer = await this.org.call(api, 'GET', `/orgs/${this.org.id}/api-keys`);
    if (answer.status !== 200) throw new Error(answer.text);
    return (answer.json?.['data'] as ListedKey[]).find(({ id }) => id === this.id);
  }

  call(api: ApiAddress, method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
    const all = { 'X-Org-Api-Key': this.raw, 'X-Org-Id': this.org.id, ...headers };
    return call(api, method, path, { headers: all, ...(body === undefined ? {} : { body }) });
  }

  send(api: ApiAddress, tokens: number, options: SendOptions = {}): Promise<Answer> {
    return this.call(api, 'POST', `/orgs/${this.org.id}/ingest/chatcompletion`, modelCall(tokens, options));
  }

  /** Resolves once so much of the key's use has landed. */
  used(api: ApiAddress, use: Partial<KeyUse>): Promise<void> {
    return eventually(
      async () => {
        const listed = (await this.listed(api))?.use;
        return Object.entries(use).every(([name, value]) => listed?.[name as keyof KeyUse] === value);
      },
      { what: `the use ${JSON.stringify(use)} of the key`, withinMs: 30_000 },
    );
  }
}
