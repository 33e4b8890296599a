// A redactor of every kind of personal data, and what it makes of a text.
import { PiiRedactor, type PiiRules } from '../../../pipeline/domain/pii/pii.ts';
import { PII_KINDS } from '../../../schemas/records/pii_policy.ts';

export const redactor = (rules: Partial<PiiRules> = {}): PiiRedactor =>
  new PiiRedactor({ kinds: PII_KINDS, custom: [], hash_key: null, ...rules });
export const shown = (text: string, rules: Partial<PiiRules> = {}): string => redactor(rules).begin().text(text);
