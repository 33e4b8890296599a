// What the pages of prompts, evals and annotation show in the benchmark: a prompt with versions, an
// eval over the small traces, and a queue of them. Names contain the number of the run.
import { z } from 'zod';
import type { Target } from '../../bench/target.ts';
import { eventually } from '../../support/wait.ts';
import { call, type PortalData } from './data.ts';

const VERSIONS = 20;
const EVAL_MS_MAX = 120_000;

export interface RegistryData {
  prompt: string;
  eval_id: string;
  queue_id: string;
}

const evalShape = z.looseObject({ data: z.looseObject({ eval_id: z.string(), status: z.string() }) });

/** Makes them. Resolves when the eval is complete. */
export async function makeRegistry(target: Target, { run, small }: PortalData): Promise<RegistryData> {
  const prompt = `portal-${run}`;
  for (let version = 1; version <= VERSIONS; version += 1)
    await call(target, '/v1/prompts', {
      name: prompt,
      version: String(version),
      template: `Answer {{customer}} in ${version} sentences: {{question}}`,
      model: 'gpt-4o',
    });
  const trace_ids = Array.from({ length: small.traces }, (_, index) => `portal-${run}-small-${index}`);
  return { prompt, eval_id: await makeEval(target, run, trace_ids), queue_id: await makeQueue(target, run, trace_ids) };
}

async function makeEval(target: Target, run: string, trace_ids: string[]): Promise<string> {
  const judge = z.looseObject({ data: z.looseObject({ judge_id: z.string() }) }).parse(
    await call(target, '/v1/judges', {
      name: `portal ${run}`,
      kind: 'deterministic',
      rule: { type: 'outcome_is', outcomes: ['success'] },
      threshold: { pass: 1 },
      enabled: false,
    }),
  );
  const { eval_id } = evalShape.parse(
    await call(target, '/v1/evals', { judge_id: judge.data.judge_id, trace_ids }),
  ).data;
  await eventually(async () => evalShape.parse(await call(target, `/v1/evals/${eval_id}`)).data.status === 'complete', {
    withinMs: EVAL_MS_MAX,
    what: 'the eval',
  });
  return eval_id;
}

async function makeQueue(target: Target, run: string, trace_ids: string[]): Promise<string> {
  const { data } = z.looseObject({ data: z.looseObject({ queue_id: z.string() }) }).parse(
    await call(target, '/v1/annotation-queues', {
      name: `portal ${run}`,
      scores: [{ name: 'correct', type: 'categorical', options: ['yes', 'no'] }],
    }),
  );
  await call(target, `/v1/annotation-queues/${data.queue_id}/items`, { trace_ids });
  return data.queue_id;
}
