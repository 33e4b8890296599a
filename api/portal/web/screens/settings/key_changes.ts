// The changes of API keys: create, rotate and revoke. A raw key stays in the memory of the dialog that
// shows it.
import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { toast } from '../../ui/toast.tsx';
import { type ApiKey, KEYS_PATH } from '../costs/key_api.ts';
import type { KeyLimits } from '../costs/key_draft.ts';
import { newKeyEnds, oldKeyEnds, type Scope } from './key_scopes.ts';
import { changeError } from './settings_api.ts';

const reread = (queries: QueryClient, org_id: string): Promise<void> =>
  queries.invalidateQueries({ queryKey: [org_id, KEYS_PATH] });

interface NewKey extends KeyLimits {
  name: string;
  scopes: Scope[];
}

interface MadeKey {
  name: string;
  raw_key: string;
  /** Why the old key of a rotation was not ended; null if it was, or if there is none. */
  problem: string | null;
}

const create = async (org_id: string, body: NewKey, idempotencyKey: string): Promise<MadeKey> => {
  const { name, raw_key } = await send(org_id, 'post', '/orgs/{org_id}/api-keys', {
    params: { path: { org_id } },
    body,
    idempotencyKey,
  });
  return { name, raw_key, problem: null };
};

const revoke = (org_id: string, key_id: string) =>
  send(org_id, 'delete', '/orgs/{org_id}/api-keys/{key_id}', { params: { path: { org_id, key_id } } });

export function useCreateKey() {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ of: '', id: '' });
  return useMutation({
    // The answer holds the raw key, so it is forgotten with the dialog.
    gcTime: 0,
    mutationFn: (body: NewKey) => {
      const of = JSON.stringify(body);
      const id = key.of === of ? key.id : randomId();
      setKey({ of, id });
      return create(org_id, body, id);
    },
    onSuccess: () => reread(queries, org_id),
  });
}

/** Creates a key with the scopes and limits of another, which ends after some days or now. */
export function useRotateKey(old: ApiKey) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    gcTime: 0,
    mutationFn: async (days: number): Promise<MadeKey> => {
      const { id, name, scopes, created_at, expires_at } = old;
      const { models, requests_per_minute, tokens_per_minute, budget, labels, capture } = old;
      const limits = { models, requests_per_minute, tokens_per_minute, budget, labels, capture };
      const now = Date.now();
      const ends = newKeyEnds(created_at, expires_at, now);
      const made = await create(org_id, { name, scopes, ...limits, expires_at: ends }, idempotencyKey);
      try {
        if (days === 0) await revoke(org_id, id);
        else
          await send(org_id, 'patch', '/orgs/{org_id}/api-keys/{key_id}', {
            params: { path: { org_id, key_id: id } },
            body: { expires_at: oldKeyEnds(expires_at, days, now) },
          });
      } catch (error) {
        return { ...made, problem: changeError(error) };
      }
      return made;
    },
    onSuccess: () => reread(queries, org_id),
  });
}

export function useRevokeKey({ id, name }: ApiKey, onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => revoke(org_id, id),
    onSuccess: async () => {
      onDone();
      toast({ text: `Revoked ${oneLine(name)}.` });
      await reread(queries, org_id);
    },
  });
}
