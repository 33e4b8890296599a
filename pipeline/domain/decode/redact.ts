// What is left of a draft when personal data is replaced in it: its name, texts and attributes. Numbers that are counted and
// names of things (model, agent, department, realm) stay: limits, prices and registries go by them.
import type { Redaction } from '../pii/pii.ts';
import type { Draft } from './draft.ts';

/** Attributes by which events are counted and associated. */
const UNTOUCHED: ReadonlySet<string> = new Set(['agent_id', 'department', 'realm', 'outcomes']);

/** The draft as it may be stored; the same texts and objects where nothing is found in them. */
export function redactedDraft(draft: Draft, redaction: Redaction): Draft {
  return {
    ...draft,
    name: draft.name === draft.model ? draft.name : redaction.text(draft.name),
    // Ahead of the attributes: where the prompt stands there too, it is looked at once.
    messages: draft.messages === null ? null : (redaction.value(draft.messages) as readonly unknown[]),
    prompt_text: draft.messages === null ? redaction.textOrJson(draft.prompt_text) : draft.prompt_text,
    response: redaction.textOrJson(draft.response),
    attributes: redaction.fields(draft.attributes, UNTOUCHED),
  };
}

/** The steps of a chain, each with the kinds that were found in it. */
export function redactedSteps(
  steps: Draft['steps'],
  redaction: Redaction,
): { step: readonly [string, string]; kinds: string[] }[] {
  return steps.map(([action, observation]) => {
    const step = [redaction.textOrJson(action), redaction.textOrJson(observation)] as const;
    return { step, kinds: redaction.takeKinds() };
  });
}
