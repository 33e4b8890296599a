// Prompts in JetStream KV, one key per version, watched into memory with an index by organization
// and name: reads never leave the process. A version is written once and never changed. The
// revisions of the bucket, which no clock affects, define which version is the newest. A prompt is
// deleted version by version, the newest last, after its labels, which are one record in a bucket
// of their own.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { type BucketEntry, RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import {
  LATEST,
  parsePromptRef,
  promptKey,
  type PromptLabels,
  promptLabelsKey,
  type PromptRecord,
} from '../../../schemas/records/prompt.ts';

type Version = Pick<BucketEntry<PromptRecord>, 'value' | 'revision'>;

interface Prompt {
  /** By version. */
  versions: Map<string, Version>;
  newest: Version;
}

interface OrgIndex {
  prompts: Map<string, Prompt>;
  /** Bytes of all templates of the organization. */
  bytes: number;
}

export class PromptStore {
  readonly #bucket: WatchedBucket<PromptRecord>;
  readonly #labels: WatchedBucket<PromptLabels>;
  readonly #orgs = new Map<string, OrgIndex>();
  /** The indexed record of each key, since a deleted key no longer has one. */
  readonly #indexed = new Map<string, PromptRecord>();

  private constructor(bucket: WatchedBucket<PromptRecord>, labels: WatchedBucket<PromptLabels>) {
    this.#bucket = bucket;
    this.#labels = labels;
    for (const [key, held] of bucket.entries()) this.#index(key, held);
    bucket.onChange((key, held) => {
      this.#forget(key);
      if (held !== null) this.#index(key, held);
    });
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<PromptStore> {
    const [prompts, labels] = await Promise.all([
      watch(log, 'prompts', onProblem),
      watch(log, 'prompt_labels', onProblem),
    ]);
    return new PromptStore(prompts, labels);
  }

  /**
   * Returns the newest version of a prompt, or null if the organization has no prompt of this name.
   */
  newest(org_id: string, name: string): PromptRecord | null {
    return this.#orgs.get(org_id)?.prompts.get(name)?.newest.value ?? null;
  }

  get(org_id: string, name: string, version: string): PromptRecord | null {
    return this.#bucket.get(promptKey(org_id, name, version)) ?? null;
  }

  /**
   * Returns the prompt that `name@version`, `name@label`, or a bare name for its newest version
   * refers to; null if there is none. Where a version and a label have the same name, the version
   * counts.
   */
  resolve(org_id: string, ref: string): PromptRecord | null {
    const { name, version } = parsePromptRef(ref);
    if (version === null) return this.newest(org_id, name);
    return this.get(org_id, name, version) ?? this.labelled(org_id, name, version);
  }

  /** Returns the version that a label names; null if none has the label. */
  labelled(org_id: string, name: string, label: string): PromptRecord | null {
    if (label === LATEST) return this.newest(org_id, name);
    const version = this.labelsOf(org_id, name).labels[label];
    return version === undefined ? null : this.get(org_id, name, version);
  }

  /** Returns the labels and tags of a prompt, without those that `latest` implies. */
  labelsOf(org_id: string, name: string): Pick<PromptLabels, 'labels' | 'tags'> {
    return this.#labels.get(promptLabelsKey(org_id, name)) ?? { labels: {}, tags: [] };
  }

  /**
   * Changes the labels and tags of a prompt as `apply` returns them; null leaves them unchanged.
   * What `apply` throws ends the change.
   */
  async changeLabels(
    org_id: string,
    name: string,
    apply: (before: Pick<PromptLabels, 'labels' | 'tags'>) => Partial<Pick<PromptLabels, 'labels' | 'tags'>> | null,
  ): Promise<void> {
    await this.#labels.change(promptLabelsKey(org_id, name), (before) => {
      const current = before ?? { labels: {}, tags: [] };
      const changed = apply(current);
      return changed === null ? null : { org_id, name, labels: current.labels, tags: current.tags, ...changed };
    });
  }

  /** Returns the versions of one prompt, newest first. */
  versions(org_id: string, name: string): PromptRecord[] {
    const versions = this.#orgs.get(org_id)?.prompts.get(name)?.versions.values() ?? [];
    return [...versions].sort(newestFirst).map(({ value }) => value);
  }

  /** Returns the newest version of each prompt of an organization, newest first. */
  list(org_id: string): PromptRecord[] {
    const prompts = this.#orgs.get(org_id)?.prompts.values() ?? [];
    return Array.from(prompts, ({ newest }) => newest)
      .sort(newestFirst)
      .map(({ value }) => value);
  }

  /**
   * Returns the bounded figures of an organization: prompts, versions of one prompt, and bytes of
   * all templates.
   */
  sizes(org_id: string, name: string): { prompts: number; versions: number; bytes: number } {
    const org = this.#orgs.get(org_id);
    return {
      prompts: org?.prompts.size ?? 0,
      versions: org?.prompts.get(name)?.versions.size ?? 0,
      bytes: org?.bytes ?? 0,
    };
  }

  /**
   * Writes a version unless it exists.
   *
   * @returns the stored version: `record` itself if it was written, otherwise the earlier one
   */
  async create(record: PromptRecord): Promise<PromptRecord> {
    const key = promptKey(record.org_id, record.name, record.version);
    return (await this.#bucket.change(key, (there) => (there === undefined ? record : null))) ?? record;
  }

  /**
   * Deletes the labels of a prompt and its current versions, oldest first: an interrupted deletion
   * leaves the current version in place. A version that is created at the same time stays.
   *
   * @returns the number of deleted versions
   */
  async remove(org_id: string, name: string): Promise<number> {
    const labels = promptLabelsKey(org_id, name);
    const held = this.#labels.held(labels);
    if (held !== undefined) await this.#labels.delete(labels, held.revision);
    const versions = [...(this.#orgs.get(org_id)?.prompts.get(name)?.versions.values() ?? [])]
      .sort(newestFirst)
      .reverse();
    for (const { value, revision } of versions)
      await this.#bucket.delete(promptKey(org_id, name, value.version), revision).catch((error: unknown) => {
        // A version never changes, so the conflicting write was a deletion.
        if (!(error instanceof RevisionConflict)) throw error;
      });
    return versions.length;
  }

  close(): void {
    this.#bucket.close();
    this.#labels.close();
  }

  #index(key: string, { value, revision }: Version): void {
    const version = { value, revision };
    let org = this.#orgs.get(value.org_id);
    if (org === undefined) this.#orgs.set(value.org_id, (org = { prompts: new Map(), bytes: 0 }));
    org.bytes += templateBytes(value);
    this.#indexed.set(key, value);
    const prompt = org.prompts.get(value.name);
    if (prompt === undefined) {
      org.prompts.set(value.name, { versions: new Map([[value.version, version]]), newest: version });
      return;
    }
    prompt.versions.set(value.version, version);
    if (revision > prompt.newest.revision) prompt.newest = version;
  }

  #forget(key: string): void {
    const record = this.#indexed.get(key);
    if (record === undefined) return;
    this.#indexed.delete(key);
    const org = this.#orgs.get(record.org_id);
    const prompt = org?.prompts.get(record.name);
    if (org === undefined || prompt === undefined) return;
    org.bytes -= templateBytes(record);
    prompt.versions.delete(record.version);
    const [newest] = [...prompt.versions.values()].sort(newestFirst);
    if (newest === undefined) org.prompts.delete(record.name);
    else prompt.newest = newest;
    if (org.prompts.size === 0) this.#orgs.delete(record.org_id);
  }
}

const newestFirst = (a: Version, b: Version): number => b.revision - a.revision;

/** Returns the size of a version's template and settings in the KV bucket, in bytes. */
export const templateBytes = ({ template, config }: Pick<PromptRecord, 'template' | 'config'>): number =>
  Buffer.byteLength(JSON.stringify(template)) + (config === undefined ? 0 : Buffer.byteLength(JSON.stringify(config)));
