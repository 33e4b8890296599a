// Prompts of the registry, kept in memory.
import type { operations } from './contract.ts';

type PromptAnswer = operations['getPrompt']['responses'][200]['content']['application/json'];

export type Prompt = PromptAnswer['data'];

export type PromptMessage = Exclude<Prompt['template'], string>[number];

/** At most one of the two. */
export interface PromptBy {
  version?: string;
  label?: string;
}

/** Kept prompts; the one that was made first goes first. */
const PROMPTS_MAX = 1000;

interface Kept {
  prompt: Prompt;
  freshUntil: number;
}

/** Returns kept prompts, also older ones while a newer one is fetched or cannot be. */
export class PromptCache {
  readonly #kept = new Map<string, Kept>();
  readonly #fetching = new Map<string, Promise<Prompt>>();

  async get(key: string, seconds: number, fetchPrompt: () => Promise<Prompt>): Promise<Prompt> {
    const kept = this.#kept.get(key);
    if (kept === undefined) return this.#fetch(key, seconds, fetchPrompt);
    if (kept.freshUntil <= Date.now()) void this.#fetch(key, seconds, fetchPrompt).catch(() => undefined);
    return kept.prompt;
  }

  #fetch(key: string, seconds: number, fetchPrompt: () => Promise<Prompt>): Promise<Prompt> {
    const running = this.#fetching.get(key);
    if (running !== undefined) return running;
    const fetching = fetchPrompt()
      .then((prompt) => {
        this.#kept.delete(key);
        this.#kept.set(key, { prompt, freshUntil: Date.now() + seconds * 1000 });
        const [first] = this.#kept.keys();
        if (this.#kept.size > PROMPTS_MAX && first !== undefined) this.#kept.delete(first);
        return prompt;
      })
      .finally(() => this.#fetching.delete(key));
    this.#fetching.set(key, fetching);
    return fetching;
  }
}

const VARIABLE = /\{\{\s*([\w.-]{1,128})\s*\}\}/g;

/**
 * Returns the text or the messages of a prompt with its variables filled in.
 * @throws Error naming the variables that are missing
 */
export function fillPrompt(
  prompt: Pick<Prompt, 'template'>,
  variables: Record<string, unknown>,
): string | PromptMessage[] {
  const missing = new Set<string>();
  const fill = (text: string): string =>
    text.replaceAll(VARIABLE, (whole, name: string) => {
      if (Object.hasOwn(variables, name)) return String(variables[name]);
      missing.add(name);
      return whole;
    });
  const { template } = prompt;
  const filled =
    typeof template === 'string'
      ? fill(template)
      : template.map((message) => ({ ...message, content: fill(message.content) }));
  if (missing.size > 0) throw new Error(`variables of the prompt are missing: ${[...missing].join(', ')}`);
  return filled;
}
