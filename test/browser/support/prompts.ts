// A prompt with versions and real calls, made as a program of a user makes them.
import { eventually } from '../../support/wait.ts';

export interface Caller {
  org_id: string;
  /** Calls the API as a program of the organization. */
  api: (path: string, body?: unknown) => Promise<Response>;
}

export const PROMPT_VERSIONS = [
  { template: 'Answer {{customer}} in one sentence: {{question}}', model: 'gpt-4o-mini' },
  { template: 'Answer {{customer}} politely, in one sentence: {{question}}', model: 'gpt-4o-mini' },
] as const;

export const QUESTIONS = ['Where is my sofa?', 'Can I return the lamp?', 'Is the shop open on Sunday?'] as const;

/** Creates the prompt, and sends a call of its first version for each question. Resolves when the calls can be read. */
export async function aPrompt(name: string, { org_id, api }: Caller): Promise<void> {
  for (const version of PROMPT_VERSIONS) await api('/v1/prompts', { name, ...version });
  for (const question of QUESTIONS)
    await api(`/orgs/${org_id}/ingest/chatcompletion`, {
      request: {
        model: 'gpt-4o-mini',
        messages: [{ role: 'user', content: `Answer Ann in one sentence: ${question}` }],
      },
      response: {
        choices: [{ index: 0, message: { role: 'assistant', content: 'It is on its way.' } }],
        usage: { prompt_tokens: 40, completion_tokens: 9 },
      },
      outcome: 'success',
      duration_ms: 800,
      attributes: { prompt_name: name, prompt_version: '1', prompt_variables: { customer: 'Ann', question } },
    });
  await eventually(
    async () => {
      const answer = await api(`/v1/prompts/${encodeURIComponent(name)}/calls`);
      return ((await answer.json()) as { data: unknown[] }).data.length === QUESTIONS.length;
    },
    { what: `the calls of ${name}` },
  );
}
