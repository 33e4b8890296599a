// The judge that the editor works on: its fields as they are typed, the body of a request made of
// them, and the fields that are missing or that the API refused. Pure.
import type { components, paths } from '../../client/contract.d.ts';
import { RequestError } from '../../client/error.ts';

export type Judge = components['schemas']['Judge'];
type CreateBody = paths['/v1/judges']['post']['requestBody']['content']['application/json'];
export type DraftBody = CreateBody;
type RuleBody = Extract<CreateBody, { kind: 'deterministic' }>['rule'];
export type RuleType = RuleBody['type'];
export type OutcomeName = NonNullable<RuleBody['outcomes']>[number];
type RuleParameter = 'pattern' | 'value' | 'schema' | 'max' | 'outcomes';

/** How a type of rule is named, which parameter it takes, and whether it reads fields. */
interface RuleKind {
  label: string;
  parameter: RuleParameter | null;
  readsFields: boolean;
}

export const RULES: Readonly<Record<RuleType, RuleKind>> = {
  not_contains: { label: 'Does not contain a text', parameter: 'value', readsFields: true },
  contains: { label: 'Contains a text', parameter: 'value', readsFields: true },
  equals: { label: 'Equals a text', parameter: 'value', readsFields: true },
  regex_absent: { label: 'Does not match a pattern', parameter: 'pattern', readsFields: true },
  regex_present: { label: 'Matches a pattern', parameter: 'pattern', readsFields: true },
  json_valid: { label: 'Is valid JSON', parameter: null, readsFields: true },
  json_schema: { label: 'Fits a JSON schema', parameter: 'schema', readsFields: true },
  max_length: { label: 'Has at most so many characters', parameter: 'max', readsFields: true },
  max_duration_ms: { label: 'Takes at most so many milliseconds', parameter: 'max', readsFields: false },
  max_cost_usd: { label: 'Costs at most so many US dollars', parameter: 'max', readsFields: false },
  outcome_is: { label: 'Has one of some outcomes', parameter: 'outcomes', readsFields: false },
};

/** Variables of a template for stored traces; dataset runs also have input and expected. */
export const TEMPLATE_VARIABLES = ['prompt', 'response', 'criteria', 'scale', 'trace_id', 'input', 'expected'] as const;

/** Fields as they are typed: texts, so that a half-typed number stays. */
export interface Draft {
  kind: 'deterministic' | 'llm';
  name: string;
  enabled: boolean;
  type: RuleType;
  fields: string;
  pattern: string;
  value: string;
  schema: string;
  max: string;
  outcomes: readonly OutcomeName[];
  template: string;
  model: string;
  scale: string;
  criteria: string;
  cooldown: string;
  pass: string;
  warn: string;
  source_format: string;
  agent_id: string;
  tags: string;
}

export const EMPTY_DRAFT: Draft = {
  kind: 'deterministic',
  name: '',
  enabled: true,
  type: 'not_contains',
  fields: 'response',
  pattern: '',
  value: '',
  schema: '{\n  "type": "object"\n}',
  max: '',
  outcomes: ['success'],
  template:
    'Rate the response from {{scale}} by these criteria:\n{{criteria}}\n\nPrompt:\n{{prompt}}\n\nResponse:\n{{response}}',
  model: '',
  scale: '1, 2, 3, 4, 5',
  criteria: 'The response answers the question',
  cooldown: '60',
  pass: '1',
  warn: '',
  source_format: '',
  agent_id: '',
  tags: '',
};

/** Returns the draft for a stored judge. */
export function draftOf(judge: Judge): Draft {
  const { rule, threshold, scope, rubric } = judge;
  const given = (name: string): unknown => rule?.[name];
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return {
    ...EMPTY_DRAFT,
    kind: judge.kind,
    name: judge.name,
    enabled: judge.enabled,
    type: typeOf(given('type')),
    fields: listText(given('fields')) || EMPTY_DRAFT.fields,
    pattern: text(given('pattern')),
    value: text(given('value')),
    schema: given('schema') === undefined ? EMPTY_DRAFT.schema : JSON.stringify(given('schema'), null, 2),
    max: numberText(given('max')),
    outcomes: outcomesOf(given('outcomes')),
    template: judge.prompt_template ?? EMPTY_DRAFT.template,
    model: judge.model ?? '',
    scale: rubric?.scale.join(', ') ?? EMPTY_DRAFT.scale,
    criteria: rubric?.criteria.join('\n') ?? EMPTY_DRAFT.criteria,
    cooldown: String(judge.cooldown_seconds),
    pass: String(threshold.pass),
    warn: threshold.warn === undefined ? '' : String(threshold.warn),
    source_format: listText(scope.source_format),
    agent_id: listText(scope.agent_id),
    tags: listText(scope.tags),
  };
}

const typeOf = (given: unknown): RuleType =>
  (Object.keys(RULES) as RuleType[]).find((type) => type === given) ?? EMPTY_DRAFT.type;
const listText = (given: unknown): string => (Array.isArray(given) ? given.join(', ') : '');
const numberText = (given: unknown): string => (typeof given === 'number' ? String(given) : '');
const OUTCOMES: readonly OutcomeName[] = ['success', 'error', 'timeout'];
const outcomesOf = (given: unknown): OutcomeName[] =>
  Array.isArray(given) ? OUTCOMES.filter((name) => given.includes(name)) : ['success'];

/** Returns the items of a comma-separated text. */
export const itemsOf = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  ),
];

/** Returns a comma-separated text as a list parameter of the API, in which a backslash keeps its own sign. */
export const escapedItems = (text: string): string =>
  itemsOf(text)
    .map((item) => item.replaceAll('\\', String.raw`\\`))
    .join(',');

/** Errors by the name of the field in the API: `rule.pattern`, `threshold.pass`. */
export type DraftErrors = Readonly<Record<string, string>>;

/** Returns what the draft lacks before the API can be asked; empty when it lacks nothing. */
export function missingIn(draft: Draft): DraftErrors {
  const errors: Record<string, string> = {};
  const need = (field: string, text: string, what: string): void => {
    if (text.trim() === '') errors[field] = what;
  };
  const number = (field: string, text: string): void => {
    if (text.trim() === '' || Number.isNaN(Number(text))) errors[field] = 'Enter a number.';
  };
  number('threshold.pass', draft.pass);
  if (draft.warn.trim() !== '') number('threshold.warn', draft.warn);
  if (draft.kind === 'llm') {
    need('prompt_template', draft.template, 'Enter a template.');
    need('model', draft.model, 'Enter the model that judges.');
    number('cooldown_seconds', draft.cooldown);
    if (itemsOf(draft.scale).some((item) => Number.isNaN(Number(item)))) errors['rubric'] = 'Enter numbers.';
    return errors;
  }
  const { parameter } = RULES[draft.type];
  if (parameter === 'pattern') need('rule.pattern', draft.pattern, 'Enter a pattern.');
  if (parameter === 'value') need('rule.value', draft.value, 'Enter a text.');
  if (parameter === 'max') number('rule.max', draft.max);
  if (parameter === 'outcomes' && draft.outcomes.length === 0) errors['rule.outcomes'] = 'Choose an outcome.';
  if (parameter === 'schema' && jsonOf(draft.schema) === undefined) errors['rule.schema'] = 'Enter a schema as JSON.';
  return errors;
}

/** Returns the body of a request; the draft lacks nothing (missingIn). */
export function bodyOf(draft: Draft): DraftBody {
  const common = {
    name: draft.name.trim(),
    threshold: { pass: Number(draft.pass), ...(draft.warn.trim() === '' ? {} : { warn: Number(draft.warn) }) },
    scope: {
      source_format: itemsOf(draft.source_format),
      agent_id: itemsOf(draft.agent_id),
      tags: itemsOf(draft.tags),
    },
    enabled: draft.enabled,
  };
  if (draft.kind === 'deterministic') return { kind: 'deterministic', ...common, rule: ruleOf(draft) };
  return {
    kind: 'llm',
    ...common,
    prompt_template: draft.template,
    model: draft.model.trim(),
    rubric: {
      scale: itemsOf(draft.scale).map(Number),
      criteria: draft.criteria
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    },
    cooldown_seconds: Number(draft.cooldown),
  };
}

function ruleOf(draft: Draft): RuleBody {
  const { parameter, readsFields } = RULES[draft.type];
  const fields = itemsOf(draft.fields);
  const own: Partial<RuleBody> =
    parameter === 'pattern'
      ? { pattern: draft.pattern }
      : parameter === 'value'
        ? { value: draft.value }
        : parameter === 'max'
          ? { max: Number(draft.max) }
          : parameter === 'outcomes'
            ? { outcomes: [...draft.outcomes] }
            : parameter === 'schema'
              ? { schema: jsonOf(draft.schema) as Record<string, unknown> }
              : {};
  return { type: draft.type, ...(readsFields && fields.length > 0 ? { fields } : {}), ...own };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Returns the field that a refused request names, without `draft.`; null for any other error. */
export function refusedField(error: unknown): { field: string; text: string } | null {
  if (!(error instanceof RequestError) || error.status !== 422) return null;
  const found = /^(?:draft\.)?(?<field>[a-z_.]{1,60})(?:\[\d+\])?: (?<text>[^]*)$/.exec(error.detail);
  const { field, text } = found?.groups ?? {};
  return field === undefined || text === undefined
    ? null
    : { field: field.startsWith('rubric') ? 'rubric' : field, text };
}

/** Returns the definition of a judge as text, for the comparison of two versions. */
export function definitionText(body: DraftBody | Judge): string {
  const shown = Object.fromEntries(
    ['name', 'kind', 'rule', 'prompt_template', 'model', 'rubric', 'threshold', 'scope', 'cooldown_seconds', 'enabled']
      .map((name) => [name, (body as Record<string, unknown>)[name]] as const)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, name === 'scope' ? withoutEmpty(value as Record<string, unknown>) : value]),
  );
  return JSON.stringify(shown, null, 2);
}

const withoutEmpty = (scope: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(scope).filter(([, list]) => Array.isArray(list) && list.length > 0));
