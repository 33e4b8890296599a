// A thread that makes texts with their word counts and inserts them into bench_texts; started by
// fill.ts. In: workerData {clickhouseUrl, from, to, seed}. The counts come from the pipeline's own
// code.
import { parentPort, workerData } from 'node:worker_threads';
import { documentTerms } from '../../pipeline/domain/text/text_terms.ts';
import { sqlRunner } from './store.ts';
import { seededRandom, Vocabulary } from './vocabulary.ts';

export interface TextRange {
  clickhouseUrl: string;
  from: number;
  to: number;
  seed: number;
}

const INSERT_ROWS = 10_000;
const PROMPT_WORDS = 76;
const RESPONSE_WORDS = 114;

async function insertTexts({ clickhouseUrl, from, to, seed }: TextRange): Promise<void> {
  const runSql = sqlRunner(clickhouseUrl);
  const vocabulary = new Vocabulary();
  const random = seededRandom(seed);
  let pending: Promise<unknown> = Promise.resolve();
  for (let first = from; first < to; first += INSERT_ROWS) {
    const lines: string[] = [];
    for (let i = first; i < Math.min(to, first + INSERT_ROWS); i += 1) {
      const prompt = JSON.stringify([{ role: 'user', content: vocabulary.text(PROMPT_WORDS, random) }]);
      const response = vocabulary.text(RESPONSE_WORDS, random);
      const { words, dl } = documentTerms(prompt, response);
      lines.push(JSON.stringify([i, prompt, response, words, dl]));
    }
    await pending;
    pending = runSql(`INSERT INTO bench_texts FORMAT JSONCompactEachRow\n${lines.join('\n')}`);
  }
  await pending;
}

await insertTexts(workerData as TextRange);
parentPort?.postMessage('done');
