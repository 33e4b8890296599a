// An organization of one test file with a person of each role, for what would disturb other tests in
// the organization that they share: limits, prices and alerts.
import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { inject } from 'vitest';
import { loadSecrets } from '../../../ops/launch/secrets.ts';
import { confirmed } from '../../support/wait.ts';
import { openPage, type PageOptions } from './browser.ts';
import type { Cookie, Role } from './person.ts';
import type { PortalService } from './portal_service.ts';

const COOKIE = 'svc_session';
const SESSION = '2h';
export type { Role } from './person.ts';

export interface Answer {
  status: number;
  json: { data?: unknown; detail?: string };
}

export class OwnOrg {
  readonly org_id: string;
  readonly #key: string;
  readonly #tokens: ReadonlyMap<Role, string>;

  private constructor(org_id: string, key: string, tokens: ReadonlyMap<Role, string>) {
    this.org_id = org_id;
    this.#key = key;
    this.#tokens = tokens;
  }

  /** Creates the organization, its people and a key of every scope. */
  static async make(): Promise<OwnOrg> {
    const { admin_token } = inject('portal');
    const org_id = `org_${randomUUID().slice(0, 8)}`;
    const people = new Map<Role, string>();
    const person = async (role: Role): Promise<{ user_id: string; email: string; token: string }> => {
      const user_id = `${role}_${randomUUID()}`;
      const email = `${user_id}@example.com`;
      const token = await tokenOf(user_id, email);
      people.set(role, token);
      return { user_id, email, token };
    };
    const { user_id, email, token: owner } = await person('owner');
    const body = { org_id, name: 'Own organization', plan_name: 'enterprise', owner: { user_id, email } };
    ok(await ask('POST', '/admin/orgs', { authorization: `Bearer ${admin_token}` }, body));
    const asOwner = { authorization: `Bearer ${owner}`, 'x-org-id': org_id };
    const made = ok(await ask('POST', `/orgs/${org_id}/api-keys`, asOwner, { name: 'tests', scopes: ['*'] }));
    for (const role of ['admin', 'member', 'viewer'] as const) {
      const one = await person(role);
      const invite = ok(await ask('POST', `/orgs/${org_id}/members`, asOwner, { email: one.email, role }));
      const as = { authorization: `Bearer ${one.token}`, 'x-org-id': org_id };
      const { token } = invite.data as { token: string };
      ok(await ask('POST', `/orgs/${org_id}/members/accept`, as, { token }));
    }
    return new OwnOrg(org_id, (made as { raw_key: string }).raw_key, people);
  }

  /** The organization as the place of a helper that takes a service: its key, and the session of a person of it. */
  portal(role: Role = 'owner'): PortalService {
    const cookie = { name: COOKIE, value: this.#tokens.get(role) ?? '' };
    return { ...inject('portal'), org_id: this.org_id, api_key: this.#key, cookie };
  }

  /** Calls the API as a program with the key. */
  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return ask(method, path, { 'x-org-api-key': this.#key, 'x-org-id': this.org_id }, body);
  }

  /** Calls the API and returns the data. @throws Error if the answer is no success */
  async data<T>(method: string, path: string, body?: unknown): Promise<T> {
    return ok(await this.call(method, path, body)).data as T;
  }

  /** Calls the API as the person of a role, for what no key may do. @throws Error if the answer is no success */
  async as<T>(role: Role, method: string, path: string, body?: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${this.#tokens.get(role) ?? ''}`, 'x-org-id': this.org_id };
    return ok(await ask(method, path, headers, body)).data as T;
  }

  /** Opens a page of the organization, logged in as the person of a role. */
  open(role: Role, path: string, options: Omit<PageOptions, 'at' | 'loggedIn'> = {}): Promise<Page> {
    const { hostname } = new URL(inject('portal').url);
    const cookie = {
      name: COOKIE,
      value: this.#tokens.get(role) ?? '',
      domain: hostname,
      path: '/',
      expires: -1,
      httpOnly: true,
      secure: false,
      sameSite: 'Strict' as const,
    };
    const storageState: BrowserContextOptions['storageState'] = { cookies: [cookie], origins: [] };
    return openPage({ at: `/o/${this.org_id}${path}`, loggedIn: false, context: { ...options.context, storageState } });
  }
}

/** Returns somebody who belongs to no organization: the mail address, and the cookie of a session. */
export async function aStranger(): Promise<{ email: string; cookie: Cookie }> {
  const user_id = `stranger_${randomUUID()}`;
  const email = `${user_id}@example.com`;
  return { email, cookie: { name: COOKIE, value: await tokenOf(user_id, email) } };
}

function tokenOf(user_id: string, email: string): Promise<string> {
  const secret = new TextEncoder().encode(loadSecrets(inject('portal').data_dir).jwt_secret);
  return new SignJWT({ email })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user_id)
    .setExpirationTime(SESSION)
    .sign(secret);
}

async function ask(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> {
  const idempotency = method === 'GET' ? {} : { 'idempotency-key': randomUUID() };
  const answer = await confirmed(() =>
    fetch(inject('portal').url + path, {
      method,
      headers: { ...headers, ...idempotency, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  return { status: answer.status, json: (await answer.json()) as Answer['json'] };
}

function ok({ status, json }: Answer): Answer['json'] {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(json)}`);
  return json;
}
