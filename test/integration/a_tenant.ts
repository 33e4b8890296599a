// A tenant for one test: an organization with an owner and a key of every scope, created by the
// operator as a customer's organization is. The tenant ingests, reads, creates more keys, and waits
// until its spans are stored. Tests that share a service stay isolated because each has its own
// tenant.
import { expect } from 'vitest';
import type { SourceFormat } from '../../schemas/codec.ts';
import type { TestDatabase } from '../support/clickhouse.ts';
import { eventually } from '../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, tokenOf } from './api/an_api.ts';

/** Request headers that identify the caller. They replace the default key of call(). */
export type Caller = Record<string, string | undefined>;

export const asOperator: Caller = {
  'X-Org-Api-Key': undefined,
  'X-Org-Id': undefined,
  Authorization: `Bearer ${ADMIN_TOKEN}`,
};

/** The part of a service that a tenant needs: an API and, for landed(), the API's database. */
export interface Serving {
  api: { url: string };
  database?: Pick<TestDatabase, 'run'>;
}

export interface TenantOptions {
  /** Id of the organization; generated if unset. */
  org?: string;
  /** Fields of POST /admin/orgs that override those of an enterprise organization. */
  fields?: Record<string, unknown>;
}

/** An organization and the two callers that act for it: a key and the owner. */
export interface Account {
  org: string;
  /** A key of every scope. */
  key: Caller;
  owner: Caller;
}

let made = 0;

export class Tenant implements Account {
  readonly org: string;
  readonly key: Caller;
  readonly owner: Caller;
  readonly #service: Serving;

  constructor(service: Serving, { org, key, owner }: Account) {
    this.#service = service;
    this.org = org;
    this.key = key;
    this.owner = owner;
  }

  /** Calls the API with the key of every scope unless `headers` name another caller. */
  call(method: string, path: string, options: Parameters<typeof call>[3] = {}): Promise<Answer> {
    return call(this.#service.api, method, path, { ...options, headers: { ...this.key, ...options.headers } });
  }

  get(path: string, as: Caller = {}): Promise<Answer> {
    return this.call('GET', path, { headers: as });
  }

  /** Creates another key with these scopes. */
  keyOf(...scopes: string[]): Promise<Caller> {
    return makeKey(this.#service.api, this.org, scopes);
  }

  /** Sends one event, or several as { events }. Resolves once the API has accepted them. */
  async ingest(format: SourceFormat, body: unknown): Promise<Answer> {
    const answer = await this.call('POST', `/orgs/${this.org}/ingest/${format}`, { body });
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    return answer;
  }

  /**
   * Resolves once this many spans of the organization are stored in the spans, the traces and the
   * usage.
   */
  async landed(spans: number): Promise<void> {
    const { database } = this.#service;
    if (database === undefined) throw new Error('landed() takes the database of the service');
    const of = `WHERE org_id = '${this.org}'`;
    const sql = `SELECT (SELECT count() FROM spans ${of}), (SELECT sum(spans * sign) FROM traces ${of}), (SELECT sum(events) FROM usage_events ${of})`;
    await eventually(async () => (await database.run(sql)).trim() === [spans, spans, spans].join('\t'), {
      what: `${spans} landed spans of ${this.org}`,
    });
  }

  /** Resolves once this many spans have landed, as landed() says, and a search finds their texts. */
  async searchable(spans: number): Promise<void> {
    const { database } = this.#service;
    await this.landed(spans);
    const sql = `SELECT count() FROM span_texts_recent WHERE org_id = '${this.org}'`;
    await eventually(async () => (await database?.run(sql))?.trim() === '0', {
      what: `the texts of ${this.org} in the index`,
    });
  }
}

/**
 * Creates an organization with the operator's token and returns its id: an enterprise organization
 * named Acme, owned by ann, unless `fields` of POST /admin/orgs override that. Nothing is waited for.
 */
export async function makeOrg(api: { url: string }, fields: Record<string, unknown> = {}): Promise<string> {
  const owner = { user_id: 'ann', email: 'ann@example.com' };
  const body = { name: 'Acme', plan_name: 'enterprise', owner, ...fields };
  const headers = { ...asOperator, 'Idempotency-Key': crypto.randomUUID() };
  const answer = await call(api, 'POST', '/admin/orgs', { headers, body });
  expect([answer.status, answer.text]).toEqual([201, answer.text]);
  return String((answer.json?.['data'] as Record<string, unknown>)['org_id']);
}

/** Creates a key with these scopes for an organization, with the operator's token. */
export async function makeKey(api: { url: string }, org: string, scopes: readonly string[]): Promise<Caller> {
  const body = { name: 'key', scopes };
  const answer = await call(api, 'POST', `/admin/orgs/${org}/api-keys`, { headers: asOperator, body });
  expect(answer.status).toBe(201);
  return { 'X-Org-Api-Key': String(answer.json?.['raw_key']), 'X-Org-Id': org };
}

/** Creates an organization. Resolves once the organization's key works at this API. */
export async function anAccount(service: Serving, { org, fields = {} }: TenantOptions = {}): Promise<Account> {
  const org_id = org ?? `org_tenant_${++made}`;
  const owner = { user_id: `u_${org_id}`, email: `${org_id}@example.com` };
  await makeOrg(service.api, { org_id, name: org_id, owner, ...fields });
  const key = await makeKey(service.api, org_id, ['*']);
  await eventually(async () => (await call(service.api, 'GET', `/orgs/${org_id}`, { headers: key })).status === 200, {
    what: `the key of ${org_id}`,
  });
  return { org: org_id, key, owner: asUser(await tokenOf({ sub: owner.user_id }), org_id) };
}

/** Creates an organization as anAccount() does and returns the tenant that acts for it. */
export async function aTenant(service: Serving, options: TenantOptions = {}): Promise<Tenant> {
  return new Tenant(service, await anAccount(service, options));
}
