// Judges, evals and a dataset of the organization of the browser tests, made through the API: a rule
// with live scores and two versions, two evals over stored traces, and two runs of a dataset.
import { eventually } from '../../support/wait.ts';
import type { PortalService } from './portal_service.ts';

export interface Judged {
  judge_id: string;
  dataset_id: string;
  /** Evals of two versions of the judge over the same traces. */
  evals: readonly [string, string];
  /** Runs of the dataset with two models, of which the first is worse. */
  runs: readonly [string, string];
}

/** Returns the function that calls the API with the key of the organization. */
function callerOf({ url, org_id, api_key }: PortalService) {
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${api_key}`, 'x-org-id': org_id, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { data: T }).data;
  };
}

const ANSWERS = ['The refund is on its way.', 'I am sorry, but I cannot help.', 'It arrives on Monday.', 'Yes.'];
const QUESTIONS = ['a sofa', 'a lamp', 'a chair', 'a table', 'a shelf', 'a lamp shade'];

/** Makes them. Call it once for each organization. */
export async function makeJudged(portal: PortalService): Promise<Judged> {
  const call = callerOf(portal);
  const { judge_id } = await call<{ judge_id: string }>('POST', '/v1/judges', {
    name: 'Does not refuse',
    kind: 'deterministic',
    rule: { type: 'not_contains', value: 'I am sorry' },
    threshold: { pass: 1 },
    scope: { agent_id: ['judged-agent'] },
  });
  const trace_ids = await sendJudged(portal, call);
  const scored = async (): Promise<number> =>
    (await call<unknown[]>('GET', `/v1/judges/${judge_id}/scores?limit=50`)).length;
  await eventually(async () => (await scored()) === trace_ids.length, { withinMs: 60_000, what: 'live scores' });
  const run = async () => (await call<{ eval_id: string }>('POST', '/v1/evals', { judge_id, trace_ids })).eval_id;
  const first = await run();
  await call('PATCH', `/v1/judges/${judge_id}`, { rule: { type: 'regex_absent', pattern: 'sorry|Monday' } });
  const second = await run();
  const { dataset_id } = await call<{ dataset_id: string }>('POST', '/v1/datasets', {
    name: 'furniture',
    version: '1',
    items: QUESTIONS.map((question) => ({ input: { question }, expected: { answer: 'helps' } })),
  });
  const model_judge = await call<{ judge_id: string }>('POST', '/v1/judges', {
    name: 'Helps',
    kind: 'llm',
    prompt_template: 'Rate by {{criteria}} on {{scale}}:\n{{response}}',
    model: 'judge-model',
    rubric: { scale: [1, 2, 3, 4, 5], criteria: ['The answer helps'] },
    threshold: { pass: 4, warn: 3 },
    enabled: false,
  });
  const ask = async (model: string) =>
    (
      await call<{ eval_id: string }>('POST', `/v1/datasets/${dataset_id}/run`, {
        judge_id: model_judge.judge_id,
        model,
      })
    ).eval_id;
  const runs = [await ask('model-small'), await ask('model-large')] as const;
  return { judge_id, dataset_id, evals: [first, second], runs };
}

/** Sends traces that the judge scores live, and resolves with their ids once they are stored. */
async function sendJudged({ org_id }: PortalService, call: ReturnType<typeof callerOf>): Promise<string[]> {
  const events = Array.from({ length: 12 }, (_, serial) => ({
    name: 'answer a customer',
    agent_id: 'judged-agent',
    outcome: 'success',
    duration_ms: 400 + serial,
    attributes: { serial, prompt: `Question ${serial}`, response: ANSWERS[serial % ANSWERS.length] },
  }));
  const sent = await call<{ events: { trace_id: string }[] }>('POST', `/orgs/${org_id}/ingest/custom`, { events });
  const listed = () => call<unknown[]>('GET', '/v1/traces?agent_id=judged-agent&limit=50');
  await eventually(async () => (await listed()).length === events.length, { what: 'the judged traces' });
  return sent.events.map(({ trace_id }) => trace_id);
}
