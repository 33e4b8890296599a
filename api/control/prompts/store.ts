// Prompts in JetStream KV, one key a version, watched into memory with an index by org and name: reads never leave the process.
// A version is written once and never changed, so a write is a create; which one is the newest is told by the bucket's revisions,
// which no clock can mix up. A prompt is deleted version by version, the newest last.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { type Held, RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { parsePromptRef, promptKey, type PromptRecord } from '../../../schemas/records/prompt.ts';

type Version = Pick<Held<PromptRecord>, 'value' | 'revision'>;

interface Prompt {
  /** By version. */
  versions: Map<string, Version>;
  newest: Version;
}

interface OrgIndex {
  prompts: Map<string, Prompt>;
  /** Of all its templates. */
  bytes: number;
}

export class PromptStore {
  readonly #bucket: WatchedBucket<PromptRecord>;
  readonly #orgs = new Map<string, OrgIndex>();
  /** What stands in the index for each key, as a key that is gone has no record to tell. */
  readonly #indexed = new Map<string, PromptRecord>();

  private constructor(bucket: WatchedBucket<PromptRecord>) {
    this.#bucket = bucket;
    for (const [key, held] of bucket.entries()) this.#index(key, held);
    bucket.onChange((key, held) => {
      this.#forget(key);
      if (held !== null) this.#index(key, held);
    });
  }

  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<PromptStore> {
    return new PromptStore(await watch(log, 'prompts', onProblem));
  }

  /** The newest version of a prompt; null where the org has none of this name. */
  newest(org_id: string, name: string): PromptRecord | null {
    return this.#orgs.get(org_id)?.prompts.get(name)?.newest.value ?? null;
  }

  get(org_id: string, name: string, version: string): PromptRecord | null {
    return this.#bucket.get(promptKey(org_id, name, version)) ?? null;
  }

  /** What name@version means, or a bare name: its newest version. */
  resolve(org_id: string, ref: string): PromptRecord | null {
    const { name, version } = parsePromptRef(ref);
    return version === null ? this.newest(org_id, name) : this.get(org_id, name, version);
  }

  /** Versions of one prompt, the newest first. */
  versions(org_id: string, name: string): PromptRecord[] {
    const versions = this.#orgs.get(org_id)?.prompts.get(name)?.versions.values() ?? [];
    return [...versions].sort(newestFirst).map(({ value }) => value);
  }

  /** The newest version of each prompt of an org, the newest first. */
  list(org_id: string): PromptRecord[] {
    const prompts = this.#orgs.get(org_id)?.prompts.values() ?? [];
    return Array.from(prompts, ({ newest }) => newest)
      .sort(newestFirst)
      .map(({ value }) => value);
  }

  /** How much of what is bounded an org has: prompts, versions of one of them, bytes of all templates. */
  sizes(org_id: string, name: string): { prompts: number; versions: number; bytes: number } {
    const org = this.#orgs.get(org_id);
    return {
      prompts: org?.prompts.size ?? 0,
      versions: org?.prompts.get(name)?.versions.size ?? 0,
      bytes: org?.bytes ?? 0,
    };
  }

  /**
   * Writes a version unless there is one of this name already.
   * @returns what stands now: `record` itself when it was written, else the one that was there first
   */
  async create(record: PromptRecord): Promise<PromptRecord> {
    const key = promptKey(record.org_id, record.name, record.version);
    return (await this.#bucket.change(key, (there) => (there === undefined ? record : null))) ?? record;
  }

  /**
   * Deletes the versions that a prompt has now, the oldest first: a deletion that breaks off leaves the current version in place.
   * A version that is made meanwhile stays.
   * @returns how many versions there were
   */
  async remove(org_id: string, name: string): Promise<number> {
    const versions = [...(this.#orgs.get(org_id)?.prompts.get(name)?.versions.values() ?? [])]
      .sort(newestFirst)
      .reverse();
    for (const { value, revision } of versions)
      await this.#bucket.delete(promptKey(org_id, name, value.version), revision).catch((error: unknown) => {
        // A version never changes, so the other write was a deletion.
        if (!(error instanceof RevisionConflict)) throw error;
      });
    return versions.length;
  }

  close(): void {
    this.#bucket.close();
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

/** Returns the size of a prompt's template in the KV bucket, in bytes. */
export const templateBytes = ({ template }: Pick<PromptRecord, 'template'>): number =>
  Buffer.byteLength(JSON.stringify(template));
