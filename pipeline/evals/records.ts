// Reads and writes the records of evals in KV, watched into memory, and what belongs to a running
// eval: the ids of its traces, and its judge and prompt as of its start. Every write is a CAS.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { readRecord, watch } from '../../ops/platform/nats/watch.ts';
import type { BucketEntry, WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type DatasetItem, datasetKey, datasetPartKey, partsOf } from '../../schemas/records/dataset.ts';
import {
  evalJudgeKey,
  evalKey,
  evalPartKey,
  evalPromptKey,
  type EvalRecord,
  PART_IDS,
} from '../../schemas/records/eval.ts';
import { type JudgeRecord, parseJudge } from '../../schemas/records/judge.ts';
import { parsePrompt, type PromptRecord } from '../../schemas/records/prompt.ts';

/** Something that an eval needs is missing: it ends as failed, with the message as its error. */
export class EvalFailed extends Error {}

export class EvalRecords {
  readonly #bucket: WatchedBucket<EvalRecord>;
  readonly #log: Log;
  readonly #parts: KV;

  private constructor(bucket: WatchedBucket<EvalRecord>, log: Log, parts: KV) {
    this.#bucket = bucket;
    this.#log = log;
    this.#parts = parts;
  }

  /** Resolves when every record has been loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<EvalRecords> {
    return new EvalRecords(await watch(log, 'evals', onProblem), log, await log.bucket('eval_chunks'));
  }

  /** Records as the watch has shown them. */
  all(): IterableIterator<EvalRecord> {
    return this.#bucket.values();
  }

  /** Records with their keys and revisions, as the watch has shown them. */
  entries(): IterableIterator<[string, BucketEntry<EvalRecord>]> {
    return this.#bucket.entries();
  }

  /**
   * Calls back once when the watch shows that an eval is no longer running, or was deleted. Returns
   * a function that cancels the call.
   */
  onEnd(record: EvalRecord, ended: () => void): () => void {
    const key = keyOf(record);
    const stop = this.#bucket.onChange((changed, held) => {
      if (changed !== key || held?.value.status === 'running') return;
      stop();
      ended();
    });
    // The change may have arrived before this call.
    const now = this.#bucket.get(key);
    if (now !== undefined && now.status !== 'running') {
      stop();
      ended();
    }
    return stop;
  }

  /** Resolves with true when the bucket says that an eval is running. */
  async isRunning(key: string): Promise<boolean> {
    return (await this.read(key))?.status === 'running';
  }

  /** Resolves with the record in the bucket, or with null when there is none. */
  read(key: string): Promise<EvalRecord | null> {
    return readRecord(this.#log, 'evals', key);
  }

  /**
   * Changes the record of an eval as `apply` returns it; null leaves it unchanged.
   * @returns the record after the change; null when it no longer exists
   * @throws Error when the watch has not shown the record yet, and the change is to be retried
   */
  async change(key: string, apply: (record: EvalRecord) => EvalRecord | null): Promise<EvalRecord | null> {
    const changed = await this.#bucket.change(key, (record) => (record === undefined ? null : apply(record)));
    if (changed !== undefined) return changed;
    if ((await this.read(key)) === null) return null;
    throw new Error('the record of an eval has not arrived by the watch yet');
  }

  /**
   * Resolves with the ids of the traces from `from` up to, but not including, `to`, which lie
   * within one part.
   * @throws EvalFailed when they are missing
   */
  async traceIds({ org_id, eval_id }: EvalRecord, from: number, to: number): Promise<string[]> {
    if (from === to) return [];
    const part = Math.floor(from / PART_IDS);
    const ids = JSON.parse(
      await this.#part(evalPartKey(org_id, eval_id, part), 'the ids of its traces are gone'),
    ) as string[];
    return ids.slice(from - part * PART_IDS, to - part * PART_IDS);
  }

  /**
   * Resolves with the judge as of the eval's start.
   * @throws EvalFailed
   */
  async judge({ org_id, eval_id }: EvalRecord): Promise<JudgeRecord> {
    return parseJudge(await this.#part(evalJudgeKey(org_id, eval_id), 'its judge is gone'));
  }

  /**
   * Resolves with the prompt of a dataset run, or with null when it has none.
   * @throws EvalFailed
   */
  async prompt({ org_id, eval_id, dataset }: EvalRecord): Promise<PromptRecord | null> {
    if (dataset === null || dataset.prompt_version === null) return null;
    return parsePrompt(await this.#part(evalPromptKey(org_id, eval_id), 'its prompt is gone'));
  }

  /**
   * Resolves with the items of a run's dataset from `from` up to, but not including, `to`.
   * @throws EvalFailed when the dataset was deleted, or has other items now
   */
  async items(
    org_id: string,
    dataset: NonNullable<EvalRecord['dataset']>,
    from: number,
    to: number,
  ): Promise<DatasetItem[]> {
    const { dataset_id, digest } = dataset;
    const record = await readRecord(this.#log, 'datasets', datasetKey(org_id, dataset_id));
    if (record === null) throw new EvalFailed('its dataset is gone');
    if (digest !== undefined && record.digest !== digest)
      throw new EvalFailed('its dataset was deleted and made again with other items');
    const items: DatasetItem[] = [];
    for (const part of partsOf(record.parts, from, to)) {
      const held = await readRecord(this.#log, 'dataset_items', datasetPartKey(record, part));
      if (held === null) throw new EvalFailed('items of its dataset are gone');
      const first = record.parts[part] ?? 0;
      items.push(...held.slice(Math.max(0, from - first), to - first));
    }
    return items;
  }

  /** Deletes what only a running eval needs. */
  async forgetParts({ org_id, eval_id, progress }: EvalRecord): Promise<void> {
    const parts = Array.from({ length: Math.ceil(progress.total / PART_IDS) }, (_, part) =>
      evalPartKey(org_id, eval_id, part),
    );
    await Promise.all(
      [evalJudgeKey(org_id, eval_id), evalPromptKey(org_id, eval_id), ...parts].map((key) => this.#parts.purge(key)),
    );
  }

  close(): void {
    this.#bucket.close();
  }

  async #part(key: string, gone: string): Promise<string> {
    const entry = await this.#parts.get(key);
    if (entry?.operation !== 'PUT') throw new EvalFailed(gone);
    return entry.string();
  }
}

export const keyOf = ({ org_id, eval_id }: Pick<EvalRecord, 'org_id' | 'eval_id'>): string => evalKey(org_id, eval_id);
