// The filters of the trace list, by the names of GET /v1/traces. The URL, the chips, the facet rail and
// the requests take the names from this table, so a filter that the API gains is added in one place.

export type FilterKind = 'text' | 'milliseconds' | 'usd' | 'count' | 'flag';

export interface FilterSpec {
  name: string;
  /** The words of the chip and of the rail. */
  label: string;
  kind: FilterKind;
  /** True if the API accepts several values, any of which matches. */
  multiple: boolean;
  /** True if the API has not_<name>. */
  negatable: boolean;
}

const text = (name: string, label: string, multiple = true): FilterSpec => ({
  name,
  label,
  kind: 'text',
  multiple,
  negatable: true,
});
const bound = (name: string, label: string, kind: FilterKind): FilterSpec => ({
  name,
  label,
  kind,
  multiple: false,
  negatable: false,
});

const FILTERS: readonly FilterSpec[] = [
  text('outcome', 'Outcome'),
  text('agent_id', 'Agent'),
  text('root_span_name', 'Name'),
  text('model', 'Model'),
  text('tags', 'Tag'),
  text('source_format', 'Source'),
  text('department', 'Department'),
  text('realm', 'Realm'),
  text('session_id', 'Session', false),
  text('user_id', 'User', false),
  text('judge_id', 'Judge'),
  text('verdict', 'Verdict'),
  text('score', 'Score'),
  text('prompt_name', 'Prompt'),
  text('prompt_version', 'Prompt version'),
  text('trace_ids', 'Trace'),
  { name: 'sampled', label: 'Texts kept', kind: 'flag', multiple: false, negatable: false },
  { name: 'scored', label: 'Scored', kind: 'flag', multiple: false, negatable: false },
  bound('min_duration_ms', 'Duration from', 'milliseconds'),
  bound('max_duration_ms', 'Duration to', 'milliseconds'),
  bound('min_cost_usd', 'Cost from', 'usd'),
  bound('max_cost_usd', 'Cost to', 'usd'),
  bound('min_tokens', 'Tokens from', 'count'),
  bound('max_tokens', 'Tokens to', 'count'),
  { name: 'search', label: 'Text', kind: 'text', multiple: false, negatable: false },
];

/** Begins the filters by attributes of spans, such as attributes.region. */
const ATTRIBUTES = 'attributes.';
/** Bounds of the API on a path. */
const PATH_CHARS_MAX = 256;
const PATH_KEYS_MAX = 8;
const NOT = 'not_';
const specs = new Map<string, FilterSpec>(FILTERS.map((spec) => [spec.name, spec]));

/** A filter as the URL and the API name it: not_tags is the filter tags, negated. */
export interface NamedFilter {
  spec: FilterSpec;
  negated: boolean;
}

/** Returns the filter with this parameter name, or null if the list has none. */
export function filterNamed(parameter: string): NamedFilter | null {
  const plain = specs.get(parameter);
  if (plain !== undefined) return { spec: plain, negated: false };
  if (isAttribute(parameter))
    return { spec: { ...text(parameter, parameter.slice(ATTRIBUTES.length)), negatable: false }, negated: false };
  if (!parameter.startsWith(NOT)) return null;
  const spec = specs.get(parameter.slice(NOT.length));
  return spec?.negatable === true ? { spec, negated: true } : null;
}

/** Returns all filters in the order in which they are suggested. */
export const allFilters = (): readonly FilterSpec[] => FILTERS;

/** Returns the parameter that filters by an attribute; null for a path that the API does not take. */
export function attributeParameter(path: string): string | null {
  const parameter = ATTRIBUTES + path;
  return isAttribute(parameter) ? parameter : null;
}

function isAttribute(parameter: string): boolean {
  if (!parameter.startsWith(ATTRIBUTES) || parameter.length > PATH_CHARS_MAX) return false;
  const keys = parameter.slice(ATTRIBUTES.length).split('.');
  return keys.length <= PATH_KEYS_MAX && !keys.includes('');
}
