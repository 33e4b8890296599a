// The monitor that a list of traces begins: the number of failed traces among those that its filters
// choose. Filters that monitors do not have are left out, and named. Pure.
import type { Filters } from '../../lists/list_url.ts';
import type { Draft, DraftFilter, Op } from './draft.ts';

/** Fields of monitors of traces, by the filter of the list. */
const FIELDS: Readonly<Record<string, string>> = {
  agent_id: 'agent_id',
  root_span_name: 'name',
  tags: 'tag',
  user_id: 'user_id',
  session_id: 'session_id',
};
const BOUNDS: Readonly<Record<string, [field: string, op: Op]>> = {
  min_duration_ms: ['duration_ms', 'gte'],
  max_duration_ms: ['duration_ms', 'lte'],
  min_cost_usd: ['cost_usd', 'gte'],
  max_cost_usd: ['cost_usd', 'lte'],
  min_tokens: ['total_tokens', 'gte'],
  max_tokens: ['total_tokens', 'lte'],
};
const NOT = 'not_';

/** Returns the fields of the monitor, and the names of the filters that are left out. */
export function monitorFromList(filters: Filters): {
  draft: Pick<Draft, 'view' | 'measure' | 'agg' | 'filters'>;
  left_out: string[];
} {
  const kept: DraftFilter[] = [];
  const left_out: string[] = [];
  let measure = 'error_rate';
  for (const [name, values] of filters) {
    const negated = name.startsWith(NOT);
    const field = FIELDS[negated ? name.slice(NOT.length) : name];
    const bound = BOUNDS[name];
    const one = values.length === 1;
    // A value with a comma cannot be in a list that is typed with commas.
    const fits = one || values.every((value) => !value.includes(','));
    if (name === 'outcome') {
      measure = 'count';
      kept.push({ field: name, op: one ? 'eq' : 'in', value: values.join(', ') });
    } else if (field !== undefined && fits)
      kept.push({ field, op: negated ? (one ? 'ne' : 'not_in') : one ? 'eq' : 'in', value: values.join(', ') });
    else if (bound !== undefined) kept.push({ field: bound[0], op: bound[1], value: values.join() });
    else left_out.push(name);
  }
  return { draft: { view: 'traces', measure, agg: measure === 'count' ? 'sum' : 'avg', filters: kept }, left_out };
}
