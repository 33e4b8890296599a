// Judges one live trace by one LLM judge. It takes a task and stores a row of scores, publishes the
// breach if the score is one, and returns how the task ended. Guarantees: a trace that has a score
// of the judge is not judged again; the score is stored before its breach is published, and a
// repetition of the task publishes the breach again under the same id.
import { JudgeQuotaExceeded } from '../../ops/exchange/judge_quota.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { type JudgingTask, serviceEventsCodec } from '../../schemas/codec.ts';
import { breachOf, type JudgeRecord } from '../../schemas/records/judge.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { writeScores } from '../../sql/stores/judge_scores.ts';
import { readLiveScore } from '../../sql/stores/judging.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import type { JudgeVersions } from './llm_judge_versions.ts';
import type { LlmJudgement, LlmJudges } from './llm_judges.ts';
import { readJudgedTraces } from './stored_traces.ts';
import { hex16 } from '../domain/traces/ids.ts';

const PUBLISH_TIMEOUT_MS = 3000;

/**
 * judged: a score was stored. failed: an error was stored. repeated: a score was stored before. The
 * others say why there was nothing to judge.
 */
export type JudgementOutcome = 'judged' | 'failed' | 'repeated' | 'no_trace' | 'own_call' | 'quota';

/** The trace has not landed yet; the task is to be retried. */
export class NotYet extends Error {}

export interface LiveJudgementOptions {
  log: Log;
  clickhouse: ClickHouse;
  book: Pick<JudgeVersions, 'version'>;
  judges: Pick<LlmJudges, 'judge'> | null;
  /** Age of a task after which a trace that is still missing counts as deleted, milliseconds. */
  missingMs: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  onPublished: (event: string) => void;
}

export class LiveJudgement {
  readonly #options: LiveJudgementOptions;

  constructor(options: LiveJudgementOptions) {
    this.#options = options;
  }

  /**
   * Carries out a task.
   * @throws UpstreamFailed, StoreUnavailable, NotYet or Error when the task is to be retried
   */
  async carryOut(task: JudgingTask, newest: JudgeRecord, signal: AbortSignal): Promise<JudgementOutcome> {
    const { clickhouse, book, judges, now, missingMs } = this.#options;
    const { org_id, judge_id } = task;
    const [trace_id] = task.trace_ids;
    if (trace_id === undefined || judges === null) return 'no_trace';
    const judge = await book.version(newest, task.judge_version);
    const [scored] = await readLiveScore(
      clickhouse,
      { org_id, judge_id, trace_id, judge_version: judge.version },
      { signal },
    );
    if (scored !== undefined) {
      // The worker that stored the score may have died before it published the breach.
      await this.#publishBreach(judge, trace_id, scored.score);
      return 'repeated';
    }
    const [trace] = await readJudgedTraces(clickhouse, org_id, [trace_id], signal);
    if (trace === undefined) {
      if (now() - task.created_at > missingMs) return 'no_trace';
      throw new NotYet('the trace has not landed');
    }
    // The trace is a judge's own call: judging it would lead to another call, without end.
    if (trace.attributes['judge_call'] === true) return 'own_call';
    let judgement: LlmJudgement;
    try {
      judgement = await judges.judge(judge, trace, { eval_id: '', item_index: 0 }, signal);
    } catch (error) {
      if (error instanceof JudgeQuotaExceeded) return 'quota';
      throw error;
    }
    await this.#write(judge, trace, judgement);
    await this.#publishBreach(judge, trace_id, judgement.score);
    return judgement.verdict === 'error' ? 'failed' : 'judged';
  }

  /**
   * Stores that the trace could not be judged.
   * @throws StoreUnavailable
   */
  async giveUp(task: JudgingTask, newest: JudgeRecord, reason: string, signal: AbortSignal): Promise<void> {
    const judge = await this.#options.book.version(newest, task.judge_version);
    const [trace] = await readJudgedTraces(this.#options.clickhouse, task.org_id, task.trace_ids.slice(0, 1), signal);
    if (trace !== undefined) await this.#write(judge, trace, { score: null, verdict: 'error', reason });
  }

  async #write(
    { org_id, judge_id, version, name }: JudgeRecord,
    { trace_id, agent_id, started_at }: JudgedTrace,
    { score, verdict, reason }: Pick<LlmJudgement, 'score' | 'verdict' | 'reason'>,
  ): Promise<void> {
    const { clickhouse, now } = this.#options;
    const judge = { org_id, judge_id, judge_version: version, judge_name: name };
    const trace = { trace_id, agent_id, started_ms: started_at };
    await writeScores(clickhouse, [
      { ...judge, ...trace, eval_id: '', item_index: 0, score, verdict, reason, scored_ms: now() },
    ]);
  }

  async #publishBreach(judge: JudgeRecord, trace_id: string, score: number | null): Promise<void> {
    const breach = score === null ? null : breachOf(judge, trace_id, score);
    if (breach === null) return;
    const { log, now, onPublished } = this.#options;
    const { org_id, judge_id, version } = judge;
    const { event } = breach;
    const event_id = `evt_${hex16([event, org_id, judge_id, String(version), trace_id].join('\n'))}`;
    const record = { event_id, event, org_id, created_at: now(), payload: JSON.stringify(breach) };
    await publishRecord(
      log,
      EVENTS_SUBJECT,
      serviceEventsCodec,
      { events: [record] },
      { msgID: event_id, timeoutMs: PUBLISH_TIMEOUT_MS },
    );
    onPublished(event);
  }
}
