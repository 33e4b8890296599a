// Creates, lists, gets and deletes prompts. A version never changes until its prompt is deleted, so
// a reference to a version keeps its meaning.
import { promptVariables } from '../../../pipeline/domain/text/prompt.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import { parsePromptRef, type PromptRecord } from '../../../schemas/records/prompt.ts';
import { ApiError } from '../../http/errors.ts';
import type { CreateBody, ListQuery, PromptItem } from './schema.ts';
import { type PromptStore, templateBytes } from './store.ts';

/**
 * Maximum prompts of one organization, versions of one prompt, and bytes of all templates of one
 * organization: every API process holds them in memory.
 */
export const PROMPTS_ORG_MAX = 1000;
export const VERSIONS_MAX = 500;
export const ORG_BYTES_MAX = 16 * 1024 * 1024;
/** Attempts to create the next numbered version against concurrent creations of the same prompt. */
const NUMBER_TRIES_MAX = 50;

export interface PromptsDeps {
  store: PromptStore;
  /** Resolves with the running evals of an organization, as the store has them now. */
  runningEvals: (org_id: string) => Promise<EvalRecord[]>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export function itemOf({ name, version, template, model, created_at }: PromptRecord): PromptItem {
  return { name, version, template, model, variables: promptVariables(template), created_at };
}

/**
 * Creates a version of a prompt, or returns the existing one if its content is equal.
 *
 * @throws ApiError conflict when the version exists with other content, or the organization has
 * reached a maximum
 */
export async function createPrompt(
  deps: PromptsDeps,
  org_id: string,
  { name, version, template, model = null }: CreateBody,
): Promise<{ record: PromptRecord; made: boolean }> {
  const created_at = new Date(deps.now()).toISOString();
  const numbered = version == null;
  for (let tries = 1; ; tries++) {
    const record: PromptRecord = {
      org_id,
      name,
      version: version ?? nextNumber(deps.store.versions(org_id, name)),
      template,
      model,
      created_at,
    };
    const there = deps.store.get(org_id, name, record.version);
    if (there === null) checkRoom(deps.store, record);
    const stands = there ?? (await deps.store.create(record).catch(storeUnavailable));
    if (stands === record) return { record, made: true };
    if (!numbered && sameContent(stands, record)) return { record: stands, made: false };
    if (!numbered)
      throw new ApiError(
        'conflict',
        `Version ${record.version} of ${name} already exists with another template or model.`,
      );
    if (tries >= NUMBER_TRIES_MAX)
      throw new ApiError('conflict', `Other requests are creating versions of ${name}. Try again.`);
  }
}

/**
 * Returns one page of the newest versions of each prompt, newest first, and the number of prompts.
 */
export function listPrompts(
  { store }: PromptsDeps,
  org_id: string,
  { name, limit, offset }: ListQuery,
): { items: PromptItem[]; total: number } {
  const wanted = name?.toLowerCase() ?? '';
  const all = store.list(org_id).filter((record) => record.name.toLowerCase().includes(wanted));
  return { items: all.slice(offset, offset + limit).map(itemOf), total: all.length };
}

/** @throws ApiError prompt_not_found */
export function getPrompt({ store }: PromptsDeps, org_id: string, name: string, version: string | undefined) {
  const record = version === undefined ? store.newest(org_id, name) : store.get(org_id, name, version);
  if (record === null)
    throw new ApiError(
      'prompt_not_found',
      `There is no prompt ${name}${version === undefined ? '' : ` with the version ${version}`}.`,
    );
  const versions = store
    .versions(org_id, name)
    .map((one) => ({ version: one.version, model: one.model, created_at: one.created_at }));
  return { ...itemOf(record), versions };
}

/**
 * Serves DELETE /v1/prompts/{name}: deletes every version of a prompt. A run keeps a copy of its
 * prompt, so a run that starts at the same moment is carried out.
 *
 * @returns the number of deleted versions
 * @throws ApiError prompt_not_found, conflict while a running eval uses one of the versions,
 * upstream_unavailable
 */
export async function deletePrompt(
  { store, runningEvals }: PromptsDeps,
  org_id: string,
  name: string,
): Promise<number> {
  if (store.newest(org_id, name) === null) throw new ApiError('prompt_not_found', `There is no prompt ${name}.`);
  try {
    const user = (await runningEvals(org_id)).find(({ dataset }) => {
      const ref = dataset?.prompt_version ?? null;
      return ref !== null && parsePromptRef(ref).name === name;
    });
    if (user !== undefined)
      throw new ApiError(
        'conflict',
        `The running eval ${user.eval_id} uses ${String(user.dataset?.prompt_version)}. Wait for it to end, or cancel it.`,
      );
    return await store.remove(org_id, name);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError('upstream_unavailable', 'The store of prompts cannot be reached. Try again.', { cause: error });
  }
}

/** Returns one more than the largest version that is a whole number. */
function nextNumber(versions: readonly PromptRecord[]): string {
  const numbers = versions.map(({ version }) => (/^\d{1,9}$/.test(version) ? Number(version) : 0));
  return String(numbers.reduce((most, number) => Math.max(most, number), 0) + 1);
}

function checkRoom(store: PromptStore, record: PromptRecord): void {
  const { prompts, versions, bytes } = store.sizes(record.org_id, record.name);
  if (versions === 0 && prompts >= PROMPTS_ORG_MAX) throw full(`The organization has ${prompts} prompts`);
  if (versions >= VERSIONS_MAX) throw full(`${record.name} has ${versions} versions`);
  if (bytes + templateBytes(record) > ORG_BYTES_MAX) throw full(`The organization's templates have ${bytes} bytes`);
}

const full = (has: string) => new ApiError('conflict', `${has}, the most that it can have.`);

const sameContent = (a: PromptRecord, b: PromptRecord): boolean =>
  a.model === b.model && JSON.stringify(a.template) === JSON.stringify(b.template);

function storeUnavailable(cause: unknown): never {
  throw new ApiError('upstream_unavailable', 'The prompt could not be stored. Try again.', { cause });
}
