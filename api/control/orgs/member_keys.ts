// The API keys of a member: computes what a change of the member's role does to them, for the
// response and the audit log. The change itself does not depend on this: a key is limited to its
// member's permissions whenever it is used.
import { z } from 'zod';
import { type MemberRecord, memberSince } from '../../../schemas/records/org.ts';
import { keyPermissions, keyStatus, type Role } from '../../http/permissions.ts';
import type { OrgsDeps } from './orgs.ts';
import type { KeyRecord } from '../../../schemas/records/api_key.ts';

/** Key records of a removed member that are deleted concurrently. */
const DELETES_AT_ONCE = 16;
/** Maximum keys that an audit record names; the others are counted. */
const AUDITED_MAX = 100;

export const keyEffect = z
  .object({
    id: z.string(),
    name: z.string(),
    effect: z
      .enum(['capped', 'revoked', 'restored'])
      .describe(
        'capped: the key lost some permissions. revoked: it lost all of them, and requests with it are rejected. restored: it regained permissions of its scopes',
      ),
  })
  .meta({ id: 'ApiKeyEffect' });
export type KeyEffect = z.infer<typeof keyEffect>;

/** Returns the keys that belong to this membership, as far as this process has read them. */
export function keysOf({ keys }: Pick<OrgsDeps, 'keys'>, org_id: string, member: MemberRecord): KeyRecord[] {
  const since = memberSince(member);
  return keys
    .list(org_id)
    .filter(({ created_by }) => created_by?.user_id === member.user_id && created_by.member_since === since);
}

/**
 * Returns the keys whose permissions changed with the role of their member.
 *
 * @param to null for a member who was removed
 */
export function effectsOn(keys: readonly KeyRecord[], from: Role, to: Role | null): KeyEffect[] {
  return keys.flatMap(({ id, name, scopes }): KeyEffect[] => {
    const held = new Set(scopes);
    const [before, after] = [keyPermissions(held, from).length, keyPermissions(held, to).length];
    if (before === after) return [];
    if (after > before) return [{ id, name, effect: 'restored' }];
    return [{ id, name, effect: keyStatus(held, to) === 'revoked' ? 'revoked' : 'capped' }];
  });
}

/** Returns the effects as an audit record shows them, bounded in size. */
export function auditedEffects(effects: readonly KeyEffect[]): Record<string, unknown> {
  if (effects.length === 0) return {};
  const shown = effects.slice(0, AUDITED_MAX).map(({ id, effect }) => ({ id, effect }));
  return { api_keys: shown, ...(effects.length > shown.length ? { api_keys_total: effects.length } : {}) };
}

/**
 * Deletes the records of permanently revoked keys. A record that cannot be deleted stays listed as
 * revoked.
 */
export async function forgetKeys(
  { keys }: Pick<OrgsDeps, 'keys'>,
  org_id: string,
  gone: readonly KeyRecord[],
): Promise<void> {
  for (let at = 0; at < gone.length; at += DELETES_AT_ONCE)
    await Promise.allSettled(gone.slice(at, at + DELETES_AT_ONCE).map(({ id }) => keys.remove(org_id, id)));
}
