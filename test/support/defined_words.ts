// The words of a text by their definition, written as plainly as it is: the tests compare the fast
// splitter with it.
const RUN = /[\p{L}\p{M}\p{N}]+/gu;
const PAIRED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}]/u;
/** Marks of these scripts are letters, or voice kana; all others are diacritics. */
const KEPT_MARK =
  /^(?:[\u3099\u309a]|(?![\p{sc=Zinh}\p{sc=Zyyy}\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}])\p{M})$/u;

const isMark = (character: string): boolean => /^\p{M}$/u.test(character);
const isDiacritic = (character: string): boolean => isMark(character) && !KEPT_MARK.test(character);
const isPaired = (character: string): boolean => PAIRED.test(character) && !isDiacritic(character);

function folded(run: string): string {
  const lower = run.normalize('NFKC').toLowerCase().normalize('NFD');
  const plain = Array.from(lower, (character) => (isDiacritic(character) ? '' : character)).join('');
  return plain.normalize('NFC').replaceAll('ß', 'ss').replaceAll('ς', 'σ');
}

/** Returns the words of a text in order, repeats included. */
export function definedWords(text: string): string[] {
  return [...text.matchAll(RUN)]
    .flatMap(([run]) => folded(run).match(RUN) ?? [])
    .flatMap((run) => {
      const parts: string[][] = [];
      for (const character of run) {
        const part = parts.at(-1);
        if (part?.[0] !== undefined && isPaired(part[0]) === isPaired(character)) part.push(character);
        else parts.push([character]);
      }
      return parts.flatMap((part) => {
        const isOne = part[0] === undefined || !isPaired(part[0]) || part.length === 1;
        return isOne ? [part.join('')] : part.slice(1).map((character, n) => `${part[n] ?? ''}${character}`);
      });
    });
}
