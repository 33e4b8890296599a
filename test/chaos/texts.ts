// Texts of real agent runs for the load, cut to a bound: the sample of the demo, or a file of runs of one's own.
import { readFileSync } from 'node:fs';
import { parseRuns } from '../../ops/demo/runs.ts';
import type { Random } from '../bench/vocabulary.ts';

const TEXT_LENGTH_MAX = 1500;
const SAMPLE = new URL('../../ops/demo/sample_runs.json', import.meta.url);

/** @returns what gives the text of some message of some run */
export function runTexts(file: string | URL = SAMPLE): (random: Random) => string {
  const texts = parseRuns(readFileSync(file, 'utf8')).flatMap(({ traj }) =>
    traj.flatMap(({ content }) =>
      typeof content === 'string' && content !== '' ? [content.slice(0, TEXT_LENGTH_MAX).toWellFormed()] : [],
    ),
  );
  return (random) => texts[random() % texts.length] ?? '';
}
