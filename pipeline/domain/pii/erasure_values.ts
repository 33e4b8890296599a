// Lists the forms in which a value that names a person may be stored: as sent, and as a PII policy
// changed it. Pure.
import { PiiRedactor, type PiiRules } from './pii.ts';
import { IN_PLACE } from './own_patterns.ts';

/**
 * Enough steps for all patterns of a policy on the longest value of an erasure request; 0.2 s for
 * adversarial patterns.
 */
const STEPS_MAX = 8_000_000;

/**
 * Returns the value and every form in which it may be stored. A label that replaces every find of
 * its kind ([EMAIL]) is not one of them: it is the same for everybody and names nobody. A keyed
 * hash is one.
 * @param rules policies by which the organization's telemetry may have been redacted
 */
export function storedForms(attribute: string, value: string, rules: readonly PiiRules[]): string[] {
  const forms = new Set([value]);
  for (const rule of rules) {
    if (rule.hash_key === null) continue;
    const redactor = new PiiRedactor({ ...rule, bounds: { ...IN_PLACE, steps: () => STEPS_MAX } });
    const [alone, inField] = [redactor.begin(), redactor.begin()];
    const text = alone.text(value);
    const named = inField.fields({ [attribute]: value })[attribute];
    // A text whose patterns exceeded their budget is replaced by the same text for everybody.
    if (alone.exceeded.length === 0) forms.add(text);
    if (inField.exceeded.length === 0 && typeof named === 'string') forms.add(named);
  }
  return [...forms];
}
