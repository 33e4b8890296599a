// Judges traces by models. It takes a judge, a trace and the eval that the judgement is for, and
// returns a score with its verdict and reason, or an error without a score. Guarantees: no more
// calls than the organization's quota, each counted before it is made; each answered call is a span
// (RecordedCalls); a judgement that is repeated after a crash reuses recorded answers; reasons are
// redacted by the organization's policy. A judgement makes at most ASKS_MAX calls.
import { randomBytes } from 'node:crypto';
import { UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import { JudgeQuotaExceeded, type JudgeQuotas } from '../../ops/exchange/judge_quota.ts';
import { type JudgeRecord, type Verdict, verdictOf } from '../../schemas/records/judge.ts';
import type { Policy } from '../../schemas/records/policy.ts';
import {
  askAgain,
  isSafeNonce,
  type JudgedTexts,
  judgeMessages,
  judgementFormat,
  readJudgement,
  REASON_CHARS_MAX,
} from '../domain/judging/llm_prompt.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import type { PiiRedactor } from '../domain/pii/pii.ts';
import { periodAt } from '../domain/budgets/period.ts';
import type { RecordedAnswer, RecordedCalls } from './llm_recorded_calls.ts';
import { hex16 } from '../domain/traces/ids.ts';

/** Timeout of each attempt of a call. */
const CALL_TIMEOUT_MS = 60_000;
/**
 * Maximum number of calls of one judgement: an answer that cannot be used is requested once more.
 */
const ASKS_MAX = 2;
const NONCE_BYTES = 12;
/** Time for which a quota that was used up is taken as still used up. */
const USED_UP_MS = 5000;

/** Purpose of a judgement. */
export interface JudgeContext {
  /** Id of the eval; empty for live traces. */
  eval_id: string;
  /** Index of the item in its dataset; 0 when there is none. */
  item_index: number;
  /** Input and expected output of a dataset's item. */
  input?: unknown;
  expected?: unknown;
}

export interface LlmJudgement {
  /** null when the judge failed: verdict is then `error`, and the reason says why. */
  score: number | null;
  verdict: Verdict;
  reason: string;
  /**
   * True when the upstream rejected the call: other calls of the same model will fail in the same
   * way.
   */
  refused?: boolean;
  /** Tokens of all answers that the judgement took. Their cost is in their spans. */
  usage: { input_tokens: number; output_tokens: number };
}

export interface LlmJudgesOptions {
  calls: Pick<RecordedCalls, 'call'>;
  quotas: Pick<JudgeQuotas, 'take' | 'release'>;
  policyOf: (org_id: string) => Policy;
  /**
   * Returns the redactor of an organization, or null when it redacts nothing. A model may repeat
   * personal data from the trace, or make some up.
   */
  redactorOf: (org_id: string) => PiiRedactor | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Timeout of each attempt of a call, milliseconds; CALL_TIMEOUT_MS unless given. */
  timeoutMs?: number;
}

export class LlmJudges {
  readonly #options: LlmJudgesOptions;
  /**
   * Organizations whose quota was used up: the quota, and the time until which that is believed.
   */
  readonly #usedUp = new Map<string, { limit: number | null; until: number }>();

  constructor(options: LlmJudgesOptions) {
    this.#options = options;
  }

  /**
   * Returns true when the organization's quota was used up a moment ago, so that nothing needs to
   * be read for its tasks.
   */
  isUsedUp(org_id: string): boolean {
    const { policyOf, now } = this.#options;
    const found = this.#usedUp.get(org_id);
    if (found === undefined) return false;
    if (found.until > now() && found.limit === policyOf(org_id).judge_quota_calls) return true;
    this.#usedUp.delete(org_id);
    return false;
  }

  /**
   * Judges a trace.
   * @throws UpstreamFailed (unavailable only) when the call is to be retried later;
   * JudgeQuotaExceeded before any call; Error when NATS does not answer; the signal's reason
   */
  async judge(
    judge: JudgeRecord,
    trace: JudgedTrace,
    context: JudgeContext,
    signal: AbortSignal,
  ): Promise<LlmJudgement> {
    const judgement = await this.#ask(judge, trace, context, signal);
    const redactor = this.#options.redactorOf(judge.org_id);
    if (redactor === null) return judgement;
    return redactor.redact((redaction) => ({ ...judgement, reason: redaction.text(judgement.reason) }));
  }

  async #ask(
    judge: JudgeRecord,
    trace: JudgedTrace,
    context: JudgeContext,
    signal: AbortSignal,
  ): Promise<LlmJudgement> {
    const usage = { input_tokens: 0, output_tokens: 0 };
    const error = (reason: string): LlmJudgement => ({
      score: null,
      verdict: 'error',
      reason: reason.slice(0, REASON_CHARS_MAX),
      usage,
    });
    if (judge.model === null) return error('the judge names no model');
    const judged: JudgedTexts = {
      trace_id: trace.trace_id,
      prompt: trace.prompt,
      response: trace.response,
      input: context.input,
      expected: context.expected,
    };
    let messages = judgeMessages(judge, judged, nonceFor(judged));
    let problem = '';
    for (let ask = 0; ask < ASKS_MAX; ask++) {
      let answer: RecordedAnswer;
      try {
        answer = await this.#options.calls.call(
          this.#callOf({ judge, model: judge.model, trace, context, ask }, messages),
          signal,
        );
      } catch (cause) {
        if (cause instanceof UpstreamFailed && cause.kind === 'refused')
          return { ...error(`the model could not be asked: ${cause.message}`), refused: true };
        if (cause instanceof UpstreamFailed && cause.kind === 'unreadable')
          return error(`the model's answer cannot be used: ${cause.message}`);
        if (cause instanceof JudgeQuotaExceeded && ask > 0) return error(`${problem}; ${cause.message}`);
        throw cause;
      }
      usage.input_tokens += answer.usage?.input_tokens ?? 0;
      usage.output_tokens += answer.usage?.output_tokens ?? 0;
      const read = readJudgement(answer.text, judge.rubric);
      if ('score' in read)
        return { score: read.score, verdict: verdictOf(read.score, judge.threshold), reason: read.reason, usage };
      problem = `the model's answer cannot be used: ${read.problem}`;
      messages = askAgain(messages, answer.text, read.problem);
    }
    return error(problem);
  }

  #callOf(
    of: { judge: JudgeRecord; model: string; trace: JudgedTrace; context: JudgeContext; ask: number },
    messages: ReturnType<typeof judgeMessages>,
  ): Parameters<RecordedCalls['call']>[0] {
    const { judge, model, trace, context, ask } = of;
    const { org_id, judge_id, version } = judge;
    const { eval_id, item_index } = context;
    const key = ['judge', org_id, judge_id, String(version), eval_id, String(item_index), trace.trace_id].join('\n');
    const spanOf = (index: number): string => `spn_${hex16(`${key}\n${index}`)}`;
    return {
      org_id,
      key: `${key}\n${ask}`,
      request: { model, messages, response_format: judgementFormat(judge.rubric) },
      trace_id: `trc_${hex16(key)}`,
      span_id: spanOf(ask),
      ...(ask === 0 ? {} : { parent_span_id: spanOf(0) }),
      // Keep rules of tail sampling recognize these attributes; the trace is stored in full
      // whatever is sampled.
      attributes: {
        judge_call: true,
        event_type: 'judge',
        judge_id,
        judge_version: version,
        judged_trace_id: trace.trace_id,
        eval_id,
      },
      timeoutMs: this.#options.timeoutMs ?? CALL_TIMEOUT_MS,
      admit: () => this.#admit(org_id),
    };
  }

  async #admit(org_id: string): Promise<() => Promise<void>> {
    const { quotas, policyOf, now } = this.#options;
    const policy = policyOf(org_id);
    const quota = { org_id, limit: policy.judge_quota_calls, period_start: periodAt(policy, now()).start };
    try {
      await quotas.take(quota);
    } catch (error) {
      if (error instanceof JudgeQuotaExceeded)
        this.#usedUp.set(org_id, { limit: quota.limit, until: now() + USED_UP_MS });
      throw error;
    }
    return () => quotas.release(quota);
  }
}

function nonceFor(judged: JudgedTexts): string {
  for (;;) {
    const nonce = randomBytes(NONCE_BYTES).toString('hex');
    if (isSafeNonce(judged, nonce)) return nonce;
  }
}
