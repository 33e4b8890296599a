// Judges stored traces by a draft of a judge, and stores nothing but the spans of the model calls
// that it makes. It takes a judge and trace ids, and returns verdicts in the order of the ids;
// traces that the store does not have, and those that calls of judges made, are left out. Guarantees: rules and models judge by the same
// functions as live traffic; model calls count in the quota. Bounds: calls that run at a time, in
// all and for each organization, calls that wait, and bytes of the texts in memory (stored_traces).
import { randomBytes } from 'node:crypto';
import { JudgeQuotaExceeded } from '../../ops/exchange/judge_quota.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import { UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import type { PreviewCall, PreviewEnd, PreviewResult } from '../../schemas/signals/judge_previews.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import { judgeMessages } from '../domain/judging/llm_prompt.ts';
import { inScope } from '../domain/judging/rules.ts';
import { type Runner, runRules, TRACE_STEPS_MAX } from '../domain/patterns/bounds.ts';
import { picoToUsd } from '../domain/pricing/money.ts';
import type { PriceBook } from '../domain/pricing/pricing.ts';
import { estimateTokens } from '../domain/text/tokens.ts';
import type { LlmJudgement, LlmJudges } from './llm_judges.ts';
import { compileJudge, isJudgeCall, judge, judgementOf, type RuleJudge } from './rule_judges.ts';
import { judgedTraceGroups } from './stored_traces.ts';

/** Calls that run at a time; those of models are slow and do not keep rules waiting. */
const RULE_CALLS = { totalMax: 2, orgMax: 1 };
const MODEL_CALLS = { totalMax: 2, orgMax: 1 };
/** Maximum calls that a worker holds, waiting ones included; each has at most 256 KiB. */
const HELD_MAX = 32;
/** Tokens that a judgement's answer is expected to have: a number and a few sentences. */
const ANSWER_TOKENS = 120;
/** Stands for the nonce of a call in estimates, so that the same texts have the same price. */
const SAMPLE_NONCE = '3f9a1c7e52b8d06474e1a9c2';

interface PreviewsOptions {
  clickhouse: ClickHouse;
  /** null when the worker has no upstream. */
  judges: Pick<LlmJudges, 'judge'> | null;
  runner: Runner;
  prices: PriceBook;
  /** Milliseconds since the epoch. */
  now: () => number;
}

type Verdict = PreviewResult['verdicts'][number];
type Judged = Pick<Verdict, 'score' | 'verdict' | 'reason'> & { usage?: LlmJudgement['usage'] };

export class JudgePreviews {
  readonly #options: PreviewsOptions;
  readonly #slots = { deterministic: new FairSlots(RULE_CALLS), llm: new FairSlots(MODEL_CALLS) };
  #held = 0;

  constructor(options: PreviewsOptions) {
    this.#options = options;
  }

  /** @throws StoreUnavailable; the signal's reason */
  async carryOut(call: PreviewCall, signal: AbortSignal): Promise<PreviewEnd> {
    const { kind } = call.judge;
    if (kind === 'llm' && this.#options.judges === null) return { state: 'no_upstream' };
    if (this.#held >= HELD_MAX) return { state: 'busy' };
    this.#held += 1;
    try {
      const result = await this.#slots[kind].run(call.org_id, signal, () =>
        call.dry ? this.#estimate(call, signal) : this.#judge(call, signal),
      );
      return { state: 'ended', result };
    } finally {
      this.#held -= 1;
    }
  }

  async #judge({ org_id, judge: record, trace_ids }: PreviewCall, signal: AbortSignal): Promise<PreviewResult> {
    const { clickhouse } = this.#options;
    const judgeOne = record.kind === 'llm' ? this.#byModel(record, signal) : this.#byRule(compileJudge(record));
    const byTrace = new Map<string, Verdict>();
    const usage = { input_tokens: 0, output_tokens: 0 };
    let calls = 0;
    for await (const group of judgedTraceGroups(clickhouse, org_id, trace_ids, signal)) {
      const own = group.filter((trace) => !isJudgeCall(trace));
      const judged = await Promise.all(own.map(async (trace) => ({ trace, said: await judgeOne(trace) })));
      for (const { trace, said } of judged) {
        const { usage: used, ...verdict } = said;
        const { trace_id } = trace;
        byTrace.set(trace_id, { trace_id, in_scope: inScope(record.scope, trace), ...verdict });
        if (used === undefined) continue;
        calls += 1;
        usage.input_tokens += used.input_tokens;
        usage.output_tokens += used.output_tokens;
      }
    }
    const verdicts = [...new Set(trace_ids)].flatMap((trace_id) => byTrace.get(trace_id) ?? []);
    return { verdicts, found: verdicts.length, ...this.#priced(record, calls, usage) };
  }

  /** Returns the function by which a rule judges one trace, one after another. */
  #byRule(rule: RuleJudge): (trace: JudgedTrace) => Promise<Judged> {
    const { runner } = this.#options;
    const { org_id } = rule.record;
    // One trace in each turn of the event loop: this process also reads and lands the log.
    let turn: Promise<unknown> = Promise.resolve();
    const judgeOne = async (trace: JudgedTrace): Promise<Judged> => {
      await new Promise((resolve) => setImmediate(resolve));
      const began = performance.now();
      const said = judge(rule, trace, (steps) => steps <= TRACE_STEPS_MAX && !runner.isSpent(org_id));
      runner.took(org_id, performance.now() - began);
      if (!('texts' in said)) return said;
      const [result] = await runRules(runner, org_id, [{ rule: rule.rule, texts: said.texts }]);
      return judgementOf(rule, result ?? { error: 'the rule gave no result' });
    };
    return (trace) => {
      const mine = turn.then(() => judgeOne(trace));
      turn = mine.catch(() => undefined);
      return mine.then(({ score, verdict, reason }) => ({ score, verdict, reason }));
    };
  }

  #byModel(record: JudgeRecord, signal: AbortSignal): (trace: JudgedTrace) => Promise<Judged> {
    // Each preview is of its own: the answers of an earlier one are not taken for this one.
    const eval_id = `preview_${randomBytes(8).toString('hex')}`;
    return async (trace) => {
      try {
        const said = await this.#options.judges?.judge(record, trace, { eval_id, item_index: 0 }, signal);
        if (said === undefined) throw new Error('the worker has no upstream');
        const { score, verdict, reason, usage } = said;
        return { score, verdict, reason, usage };
      } catch (error) {
        if (error instanceof JudgeQuotaExceeded || error instanceof UpstreamFailed)
          return { score: null, verdict: 'error', reason: error.message };
        throw error;
      }
    };
  }

  /** Returns what the calls would cost if each answer had ANSWER_TOKENS. */
  async #estimate({ org_id, judge: record, trace_ids }: PreviewCall, signal: AbortSignal): Promise<PreviewResult> {
    let found = 0;
    let input_tokens = 0;
    for await (const group of judgedTraceGroups(this.#options.clickhouse, org_id, trace_ids, signal)) {
      const own = group.filter((trace) => !isJudgeCall(trace));
      found += own.length;
      if (record.kind !== 'llm') continue;
      for (const { trace_id, prompt, response } of own) {
        const messages = judgeMessages(record, { trace_id, prompt, response }, SAMPLE_NONCE);
        input_tokens += messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
      }
    }
    const calls = record.kind === 'llm' ? found : 0;
    const usage = { input_tokens, output_tokens: calls * ANSWER_TOKENS };
    return { verdicts: [], found, ...this.#priced(record, calls, usage) };
  }

  #priced(
    { org_id, model }: JudgeRecord,
    calls: number,
    usage: { input_tokens: number; output_tokens: number },
  ): Pick<PreviewResult, 'calls' | 'input_tokens' | 'output_tokens' | 'cost_usd'> {
    const { prices, now } = this.#options;
    if (model === null) return { calls, ...usage, cost_usd: 0 };
    const { cost_pico_usd, price } = prices.price({
      org_id,
      models: [model],
      provider: null,
      at: now(),
      usage: { ...usage, ...NO_SPECIAL_TOKENS },
    });
    return { calls, ...usage, cost_usd: price.source === 'missing' ? null : picoToUsd(cost_pico_usd) };
  }
}

const NO_SPECIAL_TOKENS = {
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  input_audio_tokens: 0,
  output_audio_tokens: 0,
};
