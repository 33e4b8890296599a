// The reads and changes of prices. The API replaces the list of own prices as a whole, so each change
// reads the newest list first and applies itself to it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { apiQuery, get, send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { type Price, withPrice } from './price_list.ts';

const PATH = '/orgs/{org_id}/prices';
const FRESH_MS = 10_000;
const BUILT_IN_FRESH_MS = 300_000;
/** Most models of one request for built-in prices. */
const MODELS_MAX = 100;

export function usePrices() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, PATH, { path: { org_id } }),
    staleTime: FRESH_MS,
    select: ({ data }) => data.prices,
  });
}

export function useUnpriced(days: number) {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, '/v1/cost/unpriced', { query: { days } }),
    staleTime: FRESH_MS,
    select: ({ data }) => data,
  });
}

/**
 * Returns the built-in prices of models, at most 100 of them.
 * @param date ISO date; undefined for today
 */
export function useBuiltIn(models: readonly string[], date?: string) {
  const { org_id } = useOrganization();
  // A comma separates models in the request, so a name that has one cannot be asked for.
  const asked = [...new Set(models)].filter((model) => model !== '' && !model.includes(',')).slice(0, MODELS_MAX);
  return useQuery({
    ...apiQuery(org_id, '/v1/cost/built-in-prices', {
      query: { models: asked, ...(date === undefined ? {} : { date }) },
    }),
    enabled: asked.length > 0,
    staleTime: BUILT_IN_FRESH_MS,
    placeholderData: (before) => before,
    select: ({ data }) => data,
  });
}

export interface PriceChange {
  /** The price to replace; null adds one. */
  former: Price | null;
  /** Null removes the former one. */
  next: Price | null;
}

/** Saves a change of one price. */
export function useSavePrices(onSaved: (change: PriceChange) => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ former, next }: PriceChange) => {
      const params = { path: { org_id } };
      const { data } = await get(org_id, PATH, params);
      const prices = withPrice(data.prices, former, next);
      if (prices === null)
        throw new Error('Somebody else has removed this price. Close the dialog and read the list again.');
      await send(org_id, 'put', PATH, { params, body: { prices } });
    },
    onSuccess: async (_, change) => {
      onSaved(change);
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}
