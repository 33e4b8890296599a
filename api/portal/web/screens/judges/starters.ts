// Rules to begin with: each is a draft that the editor opens with. Pure data.
import { type Draft, EMPTY_DRAFT } from './draft.ts';

interface Starter {
  id: string;
  /** Says what the rule holds, for the button. */
  hint: string;
  draft: Draft;
}

const rule = (id: string, hint: string, draft: Partial<Draft>): Starter => ({
  id,
  hint,
  draft: { ...EMPTY_DRAFT, ...draft },
});

export const STARTERS: readonly Starter[] = [
  rule('succeeds', 'The outcome of the run is success.', { name: 'Succeeds', type: 'outcome_is' }),
  rule('answers', 'The response is not empty.', {
    name: 'Gives an answer',
    type: 'regex_present',
    pattern: '\\S',
  }),
  rule('fast', 'The run takes at most 10 seconds.', {
    name: 'Answers within 10 s',
    type: 'max_duration_ms',
    max: '10000',
  }),
  rule('cheap', 'The run costs at most 5 cents.', { name: 'Costs at most $0.05', type: 'max_cost_usd', max: '0.05' }),
  rule('no_secrets', 'The response contains nothing that looks like an API key.', {
    name: 'Shows no keys',
    type: 'regex_absent',
    pattern: '(sk|pk|ghp|xox[abp])[-_][A-Za-z0-9_-]{16,}',
  }),
  rule('no_refusal', 'The response does not refuse or speak of itself as a model.', {
    name: 'Does not refuse',
    type: 'regex_absent',
    pattern: "(?i)as an ai (language )?model|i('m| am) (sorry, but|unable to)|i can(no|')t (help|assist)",
  }),
];

/** Returns the draft that a starter begins with; the empty draft for an unknown one. */
export const startingDraft = (id: string): Draft => STARTERS.find((one) => one.id === id)?.draft ?? EMPTY_DRAFT;
