// The labelled cases of personal data (test/data/pii_*.txt), and the precision and recall of a
// finder on them. A match counts if its kind, start and end equal those of the label.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PiiRedactor } from '../../pipeline/domain/pii/pii.ts';
import { PII_KINDS, type PiiKind } from '../../schemas/records/pii_policy.ts';

interface PiiCase {
  text: string;
  /** kind:start-end of each label. */
  labels: string[];
}

export interface PiiScore {
  kind: PiiKind | 'all';
  found: number;
  missed: number;
  wrong: number;
  /** From 0 to 1, like `recall`. */
  precision: number;
  recall: number;
}

const LABEL = /⟦(\w+)\|([^⟧]*)⟧/g;

/**
 * Reads the labelled cases.
 * @param set tuned: cases used to develop the finder; unseen: cases written afterwards, for which
 * the finder was not changed
 */
export function piiCases(set: 'tuned' | 'unseen'): PiiCase[] {
  const file = path.resolve(import.meta.dirname, '../data', set === 'tuned' ? 'pii_cases.txt' : 'pii_unseen_cases.txt');
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('# ')).map(caseOf);
}

function caseOf(line: string): PiiCase {
  const labels: string[] = [];
  let text = '';
  let at = 0;
  for (const match of line.matchAll(LABEL)) {
    const [whole, kind = '', labelled = ''] = match;
    text += line.slice(at, match.index);
    labels.push(`${kind}:${text.length}-${text.length + labelled.length}`);
    text += labelled;
    at = match.index + whole.length;
  }
  return { text: text + line.slice(at), labels };
}

/** Returns the score of each kind and of all kinds together. */
export function scorePii(cases: readonly PiiCase[]): PiiScore[] {
  const redactor = new PiiRedactor({ kinds: PII_KINDS, custom: [], hash_key: null });
  const [found, missed, wrong] = [[], [], []] as [string[], string[], string[]];
  for (const { text, labels } of cases) {
    const finds = redactor.findsIn(text).map(({ kind, start, end }) => `${kind}:${start}-${end}`);
    found.push(...finds.filter((find) => labels.includes(find)));
    wrong.push(...finds.filter((find) => !labels.includes(find)));
    missed.push(...labels.filter((label) => !finds.includes(label)));
  }
  return [...PII_KINDS, 'all' as const].map((kind) => {
    const count = (of: readonly string[]): number =>
      of.filter((one) => kind === 'all' || one.startsWith(`${kind}:`)).length;
    const [right, left, extra] = [count(found), count(missed), count(wrong)];
    return {
      kind,
      found: right,
      missed: left,
      wrong: extra,
      precision: right / (right + extra),
      recall: right / (right + left),
    };
  });
}
