// The records of evals in KV, watched, and what belongs to one of them: the ids of its traces, its judge and its prompt as they were
// when it began. Writes are CAS.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { readRecord, watch } from '../../ops/platform/nats/watch.ts';
import type { Held, WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
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

/** What an eval cannot do without is gone: it ends as failed, with this as its error. */
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

  /** Resolves when every record there is has been loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<EvalRecords> {
    return new EvalRecords(await watch(log, 'evals', onProblem), log, await log.bucket('eval_chunks'));
  }

  /** What the watch has shown. */
  all(): IterableIterator<EvalRecord> {
    return this.#bucket.values();
  }

  /** The same with their keys and revisions. */
  entries(): IterableIterator<[string, Held<EvalRecord>]> {
    return this.#bucket.entries();
  }

  /** Calls back once when the watch shows that an eval is not running any more, or is gone. Returns what stops it. */
  onEnd(record: EvalRecord, ended: () => void): () => void {
    const key = keyOf(record);
    const stop = this.#bucket.onChange((changed, held) => {
      if (changed !== key || held?.value.status === 'running') return;
      stop();
      ended();
    });
    // The change may have come before this call.
    const now = this.#bucket.get(key);
    if (now !== undefined && now.status !== 'running') {
      stop();
      ended();
    }
    return stop;
  }

  /** Whether an eval is running, by what the bucket holds now. */
  async isRunning(key: string): Promise<boolean> {
    return (await this.read(key))?.status === 'running';
  }

  /** What the bucket holds now; null where there is none. */
  read(key: string): Promise<EvalRecord | null> {
    return readRecord(this.#log, 'evals', key);
  }

  /**
   * Changes a running eval, or one that has ended, as `apply` says; null leaves it.
   * @returns what stands now; null where there is none any more
   * @throws Error when the watch has not shown it yet: to be tried again
   */
  async change(key: string, apply: (record: EvalRecord) => EvalRecord | null): Promise<EvalRecord | null> {
    const changed = await this.#bucket.change(key, (record) => (record === undefined ? null : apply(record)));
    if (changed !== undefined) return changed;
    if ((await this.read(key)) === null) return null;
    throw new Error('the record of an eval has not come by the watch yet');
  }

  /** Ids of the traces from `from` up to, without, `to`; they lie within one part. @throws EvalFailed when they are gone */
  async traceIds({ org_id, eval_id }: EvalRecord, from: number, to: number): Promise<string[]> {
    if (from === to) return [];
    const part = Math.floor(from / PART_IDS);
    const ids = JSON.parse(
      await this.#part(evalPartKey(org_id, eval_id, part), 'the ids of its traces are gone'),
    ) as string[];
    return ids.slice(from - part * PART_IDS, to - part * PART_IDS);
  }

  /** The judge as it was when the eval began. @throws EvalFailed */
  async judge({ org_id, eval_id }: EvalRecord): Promise<JudgeRecord> {
    return parseJudge(await this.#part(evalJudgeKey(org_id, eval_id), 'its judge is gone'));
  }

  /** The prompt of a dataset run; null where it has none. @throws EvalFailed */
  async prompt({ org_id, eval_id, dataset }: EvalRecord): Promise<PromptRecord | null> {
    if (dataset === null || dataset.prompt_version === null) return null;
    return parsePrompt(await this.#part(evalPromptKey(org_id, eval_id), 'its prompt is gone'));
  }

  /** Items of a run's dataset from `from` up to, without, `to`. @throws EvalFailed when the dataset is gone, or has other items by now */
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

  /** Takes away what only a running eval needs. */
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
