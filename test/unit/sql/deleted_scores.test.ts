// Scores of people and applications can be deleted by a row of their own, so every read of them has
// to leave out the scores that such a row names.
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../../../sql');
/** The condition itself, the read that looks for a deletion, and the one that asks whether a score has landed. */
const EXEMPT = ['not_deleted.sql', 'one.sql', 'landed.sql'].map((file) => `queries/user_scores/${file}`);
const files = globSync(['queries/**/*.sql', 'views/*.sql', 'analytics/*.ts'], { cwd: ROOT });
const textOf = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** Returns the text with the files that it includes, as the templates do. */
const whole = (text: string): string =>
  text.replaceAll(/\/\*include ([a-z_]+\/[a-z_]+\.sql)\*\//g, (_, file: string) => whole(textOf(`queries/${file}`)));

it('every read of scores leaves out those that were deleted', () => {
  const reading = files.filter((file) => textOf(file).includes('FROM user_scores') && !EXEMPT.includes(file));
  expect(reading.length).toBeGreaterThan(5);
  expect(reading.filter((file) => !/name = ''/.test(whole(textOf(file))))).toEqual([]);
});
