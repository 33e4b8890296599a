// Texts of real agent runs for the load, truncated: the sample of the demo, or a given file of
// runs.
import { readFileSync } from 'node:fs';
import { parseRuns } from '../../ops/demo/runs.ts';
import type { Random } from '../bench/vocabulary.ts';

const TEXT_LENGTH_MAX = 1500;
const SAMPLE = new URL('../../ops/demo/sample_runs.json', import.meta.url);

/** @returns a function that returns the text of some message of some run */
export function runTexts(file: string | URL = SAMPLE): (random: Random) => string {
  const texts = parseRuns(readFileSync(file, 'utf8')).flatMap(({ traj }) =>
    traj.flatMap(({ content }) =>
      typeof content === 'string' && content !== '' ? [content.slice(0, TEXT_LENGTH_MAX).toWellFormed()] : [],
    ),
  );
  return (random) => texts[random() % texts.length] ?? '';
}
