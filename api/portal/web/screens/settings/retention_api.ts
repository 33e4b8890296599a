// The reads and changes of retention, and the restore of texts from cold storage.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import { JOBS_PATH } from './jobs_list.tsx';
import { before, type Retention, runsAround } from './retention_draft.ts';
import { changeError } from './settings_api.ts';

const PATH = '/orgs/{org_id}/retention';
const AUDIT = '/orgs/{org_id}/audit-log';
/** Most changes since the last nightly run that can be taken back together. */
const CHANGES_MAX = 200;
/** A line of the audit log appears about a second after the change. */
const AUDIT_POLL_MS = 1000;
const AUDIT_POLLED_MS = 10_000;

export function useRetention() {
  const { org_id } = useOrganization();
  return useQuery({ ...apiQuery(org_id, PATH, { path: { org_id } }), select: ({ data }) => data });
}

/**
 * Returns the fields that the next nightly run finds changed, as they were at the last one; null for none.
 * @param savedAt when this page saved last, milliseconds since the epoch; 0: never
 */
export function usePending(savedAt: number, stored: Retention) {
  const { org_id, can } = useOrganization();
  const since = new Date(runsAround(Date.now()).last).toISOString();
  return useQuery({
    ...apiQuery(org_id, AUDIT, {
      path: { org_id },
      query: { action: 'retention.update', since, limit: CHANGES_MAX },
    }),
    enabled: can('audit:view') && can('retention:override'),
    refetchInterval: () => (Date.now() - savedAt < AUDIT_POLLED_MS ? AUDIT_POLL_MS : false),
    select: ({ data }) => ({ fields: before(data, stored) }),
  });
}

const save = async (org_id: string, body: Partial<Retention>): Promise<void> => {
  await send(org_id, 'put', '/orgs/{org_id}/retention', { params: { path: { org_id } }, body });
};

/** Saves the policy; the message afterwards takes it back. */
export function useSaveRetention(onSaved: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const reread = (): Promise<void> => queries.invalidateQueries({ queryKey: [org_id, PATH] });
  const takeBack = async (old: Partial<Retention>): Promise<void> => {
    try {
      await save(org_id, old);
      toast({ text: 'Took the change of retention back.' });
      onSaved();
    } catch (error) {
      toast({ text: `Could not take the change back: ${changeError(error) ?? ''}`, tone: 'error' });
    }
    await reread();
  };
  const change = useMutation({
    mutationFn: ({ next }: { next: Retention; old: Retention }) => save(org_id, next),
    onSuccess: async (_, { old }) => {
      onSaved();
      toast({
        text: 'Saved the retention policy.',
        action: { label: 'Undo', run: () => void takeBack(old) },
      });
      await reread();
    },
  });
  return { change, takeBack };
}

interface RestoreBody {
  since?: string;
  until?: string;
  trace_ids?: string[];
}

export function useRestore(onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ of: '', id: '' });
  return useMutation({
    mutationFn: (body: RestoreBody) => {
      const of = JSON.stringify(body);
      const idempotencyKey = key.of === of ? key.id : randomId();
      setKey({ of, id: idempotencyKey });
      return send(org_id, 'post', '/orgs/{org_id}/cold-storage/restore', {
        params: { path: { org_id } },
        body,
        idempotencyKey,
      });
    },
    onSuccess: async ({ data: { job_id } }) => {
      onDone();
      toast({ text: `Restore ${job_id} is queued.` });
      await queries.invalidateQueries({ queryKey: [org_id, JOBS_PATH] });
    },
  });
}
