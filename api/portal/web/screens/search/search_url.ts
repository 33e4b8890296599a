// The state of the search in the address, with the names of GET /v1/spans/search.
import type { Query } from '../../lists/list_query.ts';
import { spanOf } from '../../lists/list_query.ts';
import { RANGES, type TimeRange } from '../../lists/list_url.ts';
import { choice, codec, decimal, moment, optionalChoice, text } from '../../url/search_params.ts';

export const searchUrl = codec({
  q: text(),
  t: choice(RANGES, '30d'),
  since: moment(),
  until: moment(),
  model: text(),
  agent_id: text(),
  outcome: optionalChoice(['success', 'error', 'timeout']),
  min_cost_usd: decimal(0),
  max_cost_usd: decimal(0),
});
export type SearchState = ReturnType<typeof searchUrl.parse>;

/** Returns the time range of a state. */
export const timeOf = ({ t, since, until }: SearchState): TimeRange =>
  since === null && until === null ? { last: t } : { since, until };

/** Returns the parameters of the request. */
export function searchQueryOf(state: SearchState, now_ms: number): Query {
  const { q, model, agent_id, outcome, min_cost_usd, max_cost_usd } = state;
  const { since_ms, until_ms } = spanOf(timeOf(state), now_ms);
  const given: Record<string, string | null> = {
    q: q.trim(),
    model,
    agent_id,
    outcome,
    min_cost_usd: min_cost_usd === null ? null : String(min_cost_usd),
    max_cost_usd: max_cost_usd === null ? null : String(max_cost_usd),
    since: since_ms === null ? null : new Date(since_ms).toISOString(),
    until: until_ms === null ? null : new Date(until_ms).toISOString(),
  };
  return Object.fromEntries(
    Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== null && pair[1] !== ''),
  );
}
