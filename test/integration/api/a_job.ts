// Runs of jobs that a test asks for.
import { eventually } from '../../support/wait.ts';
import type { Answer } from './an_api.ts';

/** Asks for a run of a job again while its scheduled run is in progress, which answers 409. */
export async function onceFree(run: () => Promise<Answer>): Promise<Answer> {
  let answer = await run();
  await eventually(async () => answer.status !== 409 || (answer = await run()).status !== 409, {
    what: 'the end of the scheduled run',
  });
  return answer;
}
