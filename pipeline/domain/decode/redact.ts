// Redacts personal data in a draft's name, texts and attributes. Counted numbers and names of
// things (model, agent, department, realm) stay: limits, prices and registries are keyed by them.
import type { Redaction } from '../pii/pii.ts';
import type { Draft } from './draft.ts';

/** Attributes by which events are counted and associated. */
const UNTOUCHED: ReadonlySet<string> = new Set(['agent_id', 'department', 'realm', 'outcomes']);

/**
 * Returns the draft as it may be stored; the same texts and objects when nothing is found in them.
 */
export function redactedDraft(draft: Draft, redaction: Redaction): Draft {
  return {
    ...draft,
    name: draft.name === draft.model ? draft.name : redaction.text(draft.name),
    // Redacted before the attributes: when they contain the prompt too, its result is reused.
    messages: draft.messages === null ? null : (redaction.value(draft.messages) as readonly unknown[]),
    prompt_text: draft.messages === null ? redaction.textOrJson(draft.prompt_text) : draft.prompt_text,
    response: redaction.textOrJson(draft.response),
    attributes: redaction.fields(draft.attributes, UNTOUCHED),
  };
}

/** Returns the steps of a chain, each with the kinds of personal data found in it. */
export function redactedSteps(
  steps: Draft['steps'],
  redaction: Redaction,
): { step: readonly [string, string]; kinds: string[] }[] {
  return steps.map(([action, observation]) => {
    const step = [redaction.textOrJson(action), redaction.textOrJson(observation)] as const;
    return { step, kinds: redaction.takeKinds() };
  });
}
