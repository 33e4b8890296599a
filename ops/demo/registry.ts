// What the demonstration adds beside its runs, so that no page of the portal is empty: two versions of
// the prompt of the help desk, a dataset of its questions, two judges by rule, and evals. Takes a
// client; returns lines that say what was made. Guarantees: whatever is there by name stays as it
// is, so a second run adds nothing, and a key that may not make it is no failure. Models are called
// only where the service has a provider: once for each question and version of the prompt.
import { z } from 'zod';
import { HELP_AGENT, HELP_MODEL, HELP_PROMPT, HELP_VERSIONS, helpTemplate, QUESTIONS } from './help_desk.ts';
import { type ServiceClient, ServiceError } from './service_client.ts';

const DATASET = 'help-desk-questions';
const scope = { agent_id: [HELP_AGENT] };
const JUDGES = [
  {
    name: 'Answers are short',
    kind: 'deterministic',
    rule: { type: 'max_length', max: 50 },
    threshold: { pass: 1 },
    scope,
  },
  {
    name: 'Question was answered',
    kind: 'deterministic',
    rule: { type: 'outcome_is', outcomes: ['success'] },
    threshold: { pass: 1 },
    scope,
  },
] as const;

interface Registry {
  /** Ids of the judges, in their order. */
  judges: string[];
  dataset_id: string;
}

const named = z.array(z.object({ judge_id: z.string(), name: z.string() }));
const made = <T extends string>(field: T) => z.looseObject({ [field]: z.string() } as Record<T, z.ZodString>);

/** Makes prompts, dataset and judges. Call it before the runs are sent, as judges score what lands after them. */
export async function sendRegistry(client: ServiceClient): Promise<Registry | null> {
  try {
    for (const version of HELP_VERSIONS)
      await client.post('/v1/prompts', {
        name: HELP_PROMPT,
        version,
        template: helpTemplate(version),
        model: HELP_MODEL,
      });
    const items = QUESTIONS.map(([question, answer]) => ({ input: { question }, expected: { answer } }));
    const dataset = await client.post('/v1/datasets', { name: DATASET, version: '1', items });
    const known = named.parse((await client.get('/v1/judges?limit=200')).data);
    const judges: string[] = [];
    for (const judge of JUDGES) {
      const judge_id =
        known.find(({ name }) => name === judge.name)?.judge_id ??
        made('judge_id').parse((await client.post('/v1/judges', judge)).data).judge_id;
      judges.push(judge_id);
    }
    return { judges, dataset_id: made('dataset_id').parse(dataset.data).dataset_id };
  } catch (error) {
    if (isNotAllowed(error)) return null;
    throw error;
  }
}

/**
 * Starts one eval of each judge over stored traces and, where the service has a provider of models, the
 * dataset with both versions of the prompt. Evals that are there are not run again.
 *
 * @param trace_ids traces of the help desk
 * @returns lines about what was made
 */
export async function runEvals(client: ServiceClient, registry: Registry, trace_ids: string[]): Promise<string[]> {
  const { judges, dataset_id } = registry;
  const about = z.looseObject({ models: z.boolean() }).parse((await client.get('/v1/about')).data);
  const lines = [`1 prompt with ${HELP_VERSIONS.length} versions, 1 dataset, ${judges.length} judges.`];
  try {
    for (const judge_id of judges)
      if (!(await hasEval(client, `judge_id=${judge_id}`)))
        await client.post('/v1/evals', { judge_id, trace_ids, async: true });
    if (about.models && !(await hasEval(client, `dataset_id=${dataset_id}`))) {
      for (const version of HELP_VERSIONS)
        await client.post(`/v1/datasets/${dataset_id}/run`, {
          judge_id: judges[0],
          prompt_version: `${HELP_PROMPT}@${version}`,
          async: true,
        });
      lines.push(`${QUESTIONS.length * HELP_VERSIONS.length} calls of ${HELP_MODEL} for two runs of the dataset.`);
    }
    if (!about.models) lines.push('No provider of models is configured, so the dataset was not run.');
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status === 0) throw error;
    lines.push(`An eval was refused: ${error.message}`);
  }
  return lines;
}

async function hasEval(client: ServiceClient, query: string): Promise<boolean> {
  return z.array(z.unknown()).parse((await client.get(`/v1/evals?limit=1&${query}`)).data).length > 0;
}

/** True for a refusal because of the key, or because the name stands with other content. */
const isNotAllowed = (error: unknown): boolean =>
  error instanceof ServiceError && (error.status === 403 || error.status === 409);
