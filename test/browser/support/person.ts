// A person of a test file, so that files share no rate: requests of pages take from a bucket of the
// person. The person is a member of the organization, and logs in with a token as at a provider.
import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { loadSecrets } from '../../../ops/launch/secrets.ts';
import type { PortalService } from './portal_service.ts';

const COOKIE = 'svc_session';

export type Role = 'viewer' | 'member' | 'admin' | 'owner';
export type Cookie = PortalService['cookie'];

/** Returns the session cookie of a new person with a role. */
export async function aPerson(portal: PortalService, role: Role = 'admin'): Promise<Cookie> {
  const id = `person_${randomUUID()}`;
  const email = `${id}@example.com`;
  const secret = new TextEncoder().encode(loadSecrets(portal.data_dir).jwt_secret);
  const tokenOf = (sub: string, address: string): Promise<string> =>
    new SignJWT({ email: address })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(sub)
      .setExpirationTime('2h')
      .sign(secret);
  const post = async (path: string, token: string, body: unknown): Promise<{ data: { token?: string } }> => {
    const answer = await fetch(`${portal.url}/orgs/${portal.org_id}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'x-org-id': portal.org_id, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { data: { token?: string } };
  };
  const owner = await tokenOf('user_local', 'owner@localhost.localdomain');
  const { data } = await post('members', owner, { email, role });
  const own = await tokenOf(id, email);
  await post('members/accept', own, { token: data.token });
  return { name: COOKIE, value: own };
}
