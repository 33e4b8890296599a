// The API keys behind which a member stands: what a change of the member's role does to them, for the answer and the audit log.
// The change itself needs nothing of this: a key is held to its member's rights whenever it is used.
import { z } from 'zod';
import { type MemberRecord, memberSince } from '../../../schemas/records/org.ts';
import { keyPermissions, keyStatus, type Role } from '../../http/permissions.ts';
import type { OrgsDeps } from './orgs.ts';
import type { KeyRecord } from '../../../schemas/records/api_key.ts';

/** Keys of a removed member whose records are deleted at a time. */
const DELETES_AT_ONCE = 16;
/** Keys that an audit record names; it counts the others. */
const AUDITED_MAX = 100;

export const keyEffect = z
  .object({
    id: z.string(),
    name: z.string(),
    effect: z
      .enum(['capped', 'revoked', 'restored'])
      .describe(
        'capped: the key lost some permissions. revoked: it lost all of them, and is refused. restored: it has permissions of its scopes back',
      ),
  })
  .meta({ id: 'ApiKeyEffect' });
export type KeyEffect = z.infer<typeof keyEffect>;

/** Returns the keys that belong to this membership, as far as this process has seen them. */
export function keysOf({ keys }: Pick<OrgsDeps, 'keys'>, org_id: string, member: MemberRecord): KeyRecord[] {
  const since = memberSince(member);
  return keys
    .list(org_id)
    .filter(({ created_by }) => created_by?.user_id === member.user_id && created_by.member_since === since);
}

/** Returns the keys whose permissions a change of their member's role moved; `to` is null for a member who was removed. */
export function effectsOn(keys: readonly KeyRecord[], from: Role, to: Role | null): KeyEffect[] {
  return keys.flatMap(({ id, name, scopes }): KeyEffect[] => {
    const held = new Set(scopes);
    const [before, after] = [keyPermissions(held, from).length, keyPermissions(held, to).length];
    if (before === after) return [];
    if (after > before) return [{ id, name, effect: 'restored' }];
    return [{ id, name, effect: keyStatus(held, to) === 'revoked' ? 'revoked' : 'capped' }];
  });
}

/** Returns what the audit log says of the effects: bounded, as a record takes only so much. */
export function auditedEffects(effects: readonly KeyEffect[]): Record<string, unknown> {
  if (effects.length === 0) return {};
  const shown = effects.slice(0, AUDITED_MAX).map(({ id, effect }) => ({ id, effect }));
  return { api_keys: shown, ...(effects.length > shown.length ? { api_keys_total: effects.length } : {}) };
}

/** Deletes the records of keys that are refused for ever. One that cannot be deleted stays listed as revoked. */
export async function forgetKeys(
  { keys }: Pick<OrgsDeps, 'keys'>,
  org_id: string,
  gone: readonly KeyRecord[],
): Promise<void> {
  for (let at = 0; at < gone.length; at += DELETES_AT_ONCE)
    await Promise.allSettled(gone.slice(at, at + DELETES_AT_ONCE).map(({ id }) => keys.remove(org_id, id)));
}
