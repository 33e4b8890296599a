// Creates, lists, gets, labels and deletes prompts. A version never changes until its prompt is deleted, so
// a reference to a version keeps its meaning.
import { promptVariables } from '../../../pipeline/domain/text/prompt.ts';
import type { EvalRecord } from '../../../schemas/records/eval.ts';
import {
  LABELS_MAX,
  LATEST,
  parsePromptRef,
  type PromptRecord,
  templateType,
} from '../../../schemas/records/prompt.ts';
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

export function itemOf(store: PromptStore, record: PromptRecord): PromptItem {
  const { name, version, template, model, config = null, created_at } = record;
  return {
    name,
    version,
    type: templateType(template),
    template,
    model,
    config,
    variables: promptVariables(template),
    labels: labelsOfVersion(store, record),
    created_at,
  };
}

/** Returns the labels that name a version, in the order of their names after `latest`. */
export function labelsOfVersion(store: PromptStore, { org_id, name, version }: PromptRecord): string[] {
  const { labels } = store.labelsOf(org_id, name);
  const own = Object.keys(labels)
    .filter((label) => labels[label] === version)
    .sort();
  return store.newest(org_id, name)?.version === version ? [LATEST, ...own] : own;
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
  { name, version, template, model = null, config }: CreateBody,
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
      ...(config == null ? {} : { config }),
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
        `Version ${record.version} of ${name} already exists with another template, model or config.`,
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
  return {
    items: all.slice(offset, offset + limit).map((record) => itemOf(store, record)),
    total: all.length,
  };
}

/** Returns the version, or the one with the label, or the newest. @throws ApiError prompt_not_found */
export function findPrompt(
  store: PromptStore,
  org_id: string,
  name: string,
  { version, label = LATEST }: { version?: string | undefined; label?: string | undefined },
): PromptRecord {
  const record = version === undefined ? store.labelled(org_id, name, label) : store.get(org_id, name, version);
  if (record !== null) return record;
  const which = version !== undefined ? ` with the version ${version}` : label === LATEST ? '' : ` labeled ${label}`;
  throw new ApiError('prompt_not_found', `There is no prompt ${name}${which}.`);
}

/** @throws ApiError prompt_not_found */
export function getPrompt(
  { store }: PromptsDeps,
  org_id: string,
  name: string,
  by: { version?: string | undefined; label?: string | undefined },
) {
  const record = findPrompt(store, org_id, name, by);
  const versions = store.versions(org_id, name).map((one) => ({
    version: one.version,
    type: templateType(one.template),
    model: one.model,
    labels: labelsOfVersion(store, one),
    created_at: one.created_at,
  }));
  return { ...itemOf(store, record), versions };
}

/**
 * Serves PUT /v1/prompts/{name}/labels/{label}: makes the label name this version.
 *
 * @returns the version that the label named before; null if it is new
 * @throws ApiError prompt_not_found, conflict for one label too many, upstream_unavailable
 */
export async function moveLabel(
  { store }: Pick<PromptsDeps, 'store'>,
  org_id: string,
  { name, label, version }: { name: string; label: string; version: string },
): Promise<string | null> {
  findPrompt(store, org_id, name, { version });
  let before: string | null = null;
  await changingLabels(
    store.changeLabels(org_id, name, ({ labels }) => {
      before = labels[label] ?? null;
      if (before === null && Object.keys(labels).length >= LABELS_MAX)
        throw new ApiError('conflict', `${name} has ${LABELS_MAX} labels, the most that it can have.`);
      return { labels: { ...labels, [label]: version } };
    }),
  );
  return before;
}

/**
 * Serves DELETE /v1/prompts/{name}/labels/{label}.
 *
 * @returns the version that the label named
 * @throws ApiError prompt_not_found, not_found for a label that the prompt does not have,
 * upstream_unavailable
 */
export async function removeLabel(
  { store }: Pick<PromptsDeps, 'store'>,
  org_id: string,
  { name, label }: { name: string; label: string },
): Promise<string> {
  findPrompt(store, org_id, name, {});
  let before = '';
  await changingLabels(
    store.changeLabels(org_id, name, ({ labels }) => {
      const { [label]: version, ...rest } = labels;
      if (version === undefined) throw new ApiError('not_found', `The prompt ${name} has no label ${label}.`);
      before = version;
      return { labels: rest };
    }),
  );
  return before;
}

/**
 * Makes labels name a version, and replaces the tags of its prompt where some are given.
 *
 * @throws ApiError conflict for one label too many, upstream_unavailable
 */
export async function setLabels(
  store: PromptStore,
  { org_id, name, version }: PromptRecord,
  added: readonly string[],
  tags?: readonly string[],
): Promise<void> {
  await changingLabels(
    store.changeLabels(org_id, name, (before) => {
      const labels = { ...before.labels, ...Object.fromEntries(added.map((label) => [label, version])) };
      if (Object.keys(labels).length > LABELS_MAX)
        throw new ApiError('conflict', `${name} would have more than ${LABELS_MAX} labels, the most that it can have.`);
      return { labels, ...(tags === undefined ? {} : { tags: [...tags] }) };
    }),
  );
}

/** Waits for a change of labels. @throws ApiError upstream_unavailable where the store failed */
async function changingLabels(change: Promise<void>): Promise<void> {
  await change.catch((error: unknown) => {
    if (error instanceof ApiError) throw error;
    throw new ApiError('upstream_unavailable', 'The labels could not be stored. Try again.', { cause: error });
  });
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
  a.model === b.model &&
  JSON.stringify(a.template) === JSON.stringify(b.template) &&
  JSON.stringify(a.config) === JSON.stringify(b.config);

function storeUnavailable(cause: unknown): never {
  throw new ApiError('upstream_unavailable', 'The prompt could not be stored. Try again.', { cause });
}
