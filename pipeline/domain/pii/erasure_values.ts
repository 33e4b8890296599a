// How the value that names a person may be stored: as it was sent, and as a PII policy has made it. Pure.
import { PiiRedactor, type PiiRules } from './pii.ts';
import { IN_PLACE } from './own_patterns.ts';

/** Enough for all patterns of a policy on the longest value of a request to erase; 0.2 s for patterns made to be slow. */
const STEPS_MAX = 8_000_000;

/**
 * The value and the forms in which it may be stored. A label that stands for every find of its kind ([EMAIL]) is none of them: it is
 * stored for everybody alike and names nobody; a keyed hash is one.
 * @param rules those by which the org's telemetry may have been redacted
 */
export function storedForms(attribute: string, value: string, rules: readonly PiiRules[]): string[] {
  const forms = new Set([value]);
  for (const rule of rules) {
    if (rule.hash_key === null) continue;
    const redactor = new PiiRedactor({ ...rule, bounds: { ...IN_PLACE, steps: () => STEPS_MAX } });
    const [alone, inField] = [redactor.begin(), redactor.begin()];
    const text = alone.text(value);
    const named = inField.fields({ [attribute]: value })[attribute];
    // What stands for a text that patterns were too much for is stored for everybody alike.
    if (alone.exceeded.length === 0) forms.add(text);
    if (inField.exceeded.length === 0 && typeof named === 'string') forms.add(named);
  }
  return [...forms];
}
