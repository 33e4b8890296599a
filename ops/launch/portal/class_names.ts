// The names that the classes of the pages' style sheets get in a build. Takes the folder of the pages; returns a
// function from a class and its file to a name. A name is short, because the style sheet and the scripts repeat it: the
// letters number the class within its file, the digits number the file. The same sources give the same names.
import { readdirSync } from 'node:fs';
import path from 'node:path';

const LETTERS = 26;
const FIRST_LETTER = 'a'.charCodeAt(0);

/** Returns a number as letters: a to z, then aa. */
function lettersOf(number: number): string {
  const last = String.fromCharCode(FIRST_LETTER + (number % LETTERS));
  return number < LETTERS ? last : lettersOf(Math.floor(number / LETTERS) - 1) + last;
}

/**
 * Returns the function that names classes, for Vite's css.modules.generateScopedName.
 * @param web folder of the sources
 */
export function classNames(web: string): (name: string, file: string) => string {
  const sheets = readdirSync(web, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.module.css'))
    .toSorted();
  const numbers = new Map(sheets.map((file, at) => [path.join(web, file), at]));
  const classes = new Map<number, Map<string, number>>();
  return (name, file) => {
    // Vite appends a query to some addresses.
    const sheet = numbers.get(path.normalize(file.split('?')[0] ?? file));
    if (sheet === undefined) throw new Error(`${file} is no style sheet below ${web}`);
    const known = classes.get(sheet) ?? new Map<string, number>();
    classes.set(sheet, known);
    const at = known.get(name) ?? known.size;
    known.set(name, at);
    return `${lettersOf(at)}${sheet}`;
  };
}
