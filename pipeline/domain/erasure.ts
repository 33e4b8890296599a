// How the value that names a person may be stored: as it was sent, and as a PII policy has made it. Pure.
import { PiiRedactor, type PiiRules } from './pii.ts';

/**
 * The value and the forms in which it may be stored. A label that stands for every find of its kind ([EMAIL]) is none of them: it is
 * stored for everybody alike and names nobody; a keyed hash is one.
 * @param rules those by which the org's telemetry may have been redacted
 */
export function storedForms(attribute: string, value: string, rules: readonly PiiRules[]): string[] {
  const forms = new Set([value]);
  for (const rule of rules) {
    if (rule.hash_key === null) continue;
    const redactor = new PiiRedactor(rule);
    forms.add(redactor.begin().text(value));
    const named = redactor.begin().fields({ [attribute]: value })[attribute];
    if (typeof named === 'string') forms.add(named);
  }
  return [...forms];
}
