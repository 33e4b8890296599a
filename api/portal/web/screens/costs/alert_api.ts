// The reads and changes of alert settings. The API replaces the settings as a whole, so each change
// reads the newest settings first and applies itself to them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type Answer, apiQuery, get, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';

const PATH = '/orgs/{org_id}/budget/alerts';
const FRESH_MS = 10_000;

export type Alerts = Answer<'/orgs/{org_id}/budget/alerts'>['data'];
export type Threshold = Alerts['thresholds'][number];
/** The part of the settings that a change sets. */
export type AlertSettings = Pick<Alerts, 'channels' | 'thresholds' | 'webhook_url'>;
export type Change = (newest: AlertSettings) => AlertSettings;

export function useAlerts() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, PATH, { path: { org_id } }),
    staleTime: FRESH_MS,
    select: ({ data }) => data,
  });
}

/** Saves a change; its result has the secret of the webhook where the address is new. */
export function useSaveAlerts(onSaved: (saved: Alerts) => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (change: Change) => {
      const params = { path: { org_id } };
      const { data } = await get(org_id, PATH, params);
      const body = change({
        channels: data.channels,
        thresholds: data.thresholds,
        webhook_url: data.webhook_url,
      });
      return (await send(org_id, 'post', PATH, { params, body, idempotencyKey: randomId() })).data;
    },
    onSuccess: async (saved) => {
      onSaved(saved);
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}

/** Sends a test alert through every channel. */
export function useTestAlerts() {
  const { org_id } = useOrganization();
  return useMutation({
    mutationFn: async () => {
      const { data } = await send(org_id, 'post', '/orgs/{org_id}/budget/alerts/test', {
        params: { path: { org_id } },
        idempotencyKey: randomId(),
      });
      return { ...data, at: Date.now() };
    },
  });
}

/** Returns true for two thresholds that mean the same. */
export const isSame = (a: Threshold, b: Threshold): boolean =>
  a.resource === b.resource && a.percent === b.percent && a.severity === b.severity;

/**
 * Returns the change that puts a threshold in the place of another.
 * @param former the threshold to replace; null adds one
 * @param next null removes the former one
 */
export function replacing(former: Threshold | null, next: Threshold | null): Change {
  return (newest) => {
    const others = newest.thresholds.filter(
      (one) => (former === null || !isSame(one, former)) && (next === null || !isSame(one, next)),
    );
    const thresholds = next === null ? others : [...others, next];
    return { ...newest, thresholds: thresholds.toSorted(byResource) };
  };
}

const byResource = (a: Threshold, b: Threshold): number =>
  a.resource === b.resource ? a.percent - b.percent : a.resource < b.resource ? 1 : -1;
