// Creates, lists and deletes the analysts of an organization. A password is returned once and
// stored nowhere.
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../../http/errors.ts';
import type { Confinement } from './confinement.ts';
import { ANALYSTS_MAX, type AnalystItem, type CreateAnalystBody, type CreatedAnalyst } from './schema.ts';
import type { AnalystStore } from './store.ts';

const PASSWORD_BYTES = 32;
const USER_BYTES = 8;

export interface AnalystAdminDeps {
  analysts: AnalystStore;
  confinement: Pick<Confinement, 'ensure'>;
  hasOrg: (org_id: string) => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * @throws ApiError org_not_found; conflict when the name is taken, the organization has
 * ANALYSTS_MAX analysts, or the engine cannot confine analysts
 */
export async function createAnalyst(
  deps: AnalystAdminDeps,
  org_id: string,
  { name }: CreateAnalystBody,
  url: string,
): Promise<CreatedAnalyst> {
  checkOrg(deps, org_id);
  const there = deps.analysts.list(org_id);
  if (there.some((record) => record.name === name))
    throw new ApiError('conflict', `name: the organization already has an analyst ${name}`);
  if (there.length >= ANALYSTS_MAX)
    throw new ApiError('conflict', `An organization has at most ${ANALYSTS_MAX} analysts. Delete one first.`);
  const confined = await deps.confinement.ensure();
  if (typeof confined === 'string')
    throw new ApiError(
      'conflict',
      `This store cannot confine the analysts of an organization; an external ClickHouse may: ${confined}`,
    );
  const user = `analyst_${randomBytes(USER_BYTES).toString('hex')}`;
  const password = randomBytes(PASSWORD_BYTES).toString('base64url');
  const password_hash = createHash('sha256').update(password).digest('hex');
  await stored(
    deps.analysts.create({ user, org_id, name, password_hash, created_at: new Date(deps.now()).toISOString() }),
  );
  return { user, password, url };
}

/** Returns the analysts of an organization, oldest first. @throws ApiError org_not_found */
export function listAnalysts(deps: AnalystAdminDeps, org_id: string): AnalystItem[] {
  checkOrg(deps, org_id);
  return deps.analysts.list(org_id).map(({ user, name, created_at }) => ({ user, name, created_at }));
}

/** @throws ApiError org_not_found, not_found */
export async function removeAnalyst(deps: AnalystAdminDeps, org_id: string, user: string): Promise<void> {
  checkOrg(deps, org_id);
  if (!(await stored(deps.analysts.remove(org_id, user))))
    throw new ApiError('not_found', `The organization has no analyst ${user}.`);
}

/**
 * Returns the address at which a request arrived. A forwarded scheme is ignored, since no setting
 * names the proxies that may be trusted.
 */
export function baseUrlOf(req: IncomingMessage): string {
  const scheme = (req.socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http';
  return `${scheme}://${req.headers.host ?? 'localhost'}`;
}

function checkOrg({ hasOrg }: AnalystAdminDeps, org_id: string): void {
  if (!hasOrg(org_id)) throw new ApiError('org_not_found', `There is no organization ${org_id}.`);
}

async function stored<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The analyst could not be stored. Try again.', { cause });
  }
}
