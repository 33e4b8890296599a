// Wiring of LLM judging: the upstream, what all callers of models share, and the judging of live
// traces.
import { openUpstream, type Upstream } from '../../ops/platform/llm/upstream.ts';
import { answerPreviewCalls } from '../../ops/exchange/preview_calls.ts';
import { JudgeQuotas } from '../../ops/exchange/judge_quota.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import type { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import type { Runner } from '../domain/patterns/bounds.ts';
import { createPriceBook } from '../domain/pricing/pricing.ts';
import { Cooldown } from '../judging/live_cooldown.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import { JudgeVersions } from '../judging/llm_judge_versions.ts';
import { LiveJudging, type LiveTimings } from '../judging/live_judging.ts';
import { LlmJudges } from '../judging/llm_judges.ts';
import { RecordedCalls } from '../judging/llm_recorded_calls.ts';
import { JudgePreviews } from '../judging/previews.ts';
import type { PiiPolicies } from '../settings/pii_policies.ts';
import type { Policies } from '../settings/org_policies.ts';
import type { Prices } from '../settings/prices.ts';
import { countPublished, type WorkerParts } from './parts.ts';

/** Maximum model calls under way in this process, in total and for one organization. */
const CALLS = { totalMax: 16, orgMax: 4 };

/** The callers of models. */
export interface Models {
  upstream: Upstream;
  /** Makes calls that are recorded as spans, for judges and for others. */
  calls: RecordedCalls;
  judges: LlmJudges;
}

export interface Judging {
  models: Models | null;
  /**
   * Gives tasks under way some seconds to finish; the queue redelivers the rest to another worker.
   */
  stop: () => Promise<void>;
}

export function startJudging(
  { env, log, logger, clickhouse }: WorkerParts,
  parts: {
    policies: Pick<Policies, 'of'>;
    piiPolicies: Pick<PiiPolicies, 'of'>;
    deletions: Pick<OrgDeletions, 'generationOf'>;
    /** Every judge, watched; the caller closes it. */
    judgeRecords: Pick<WatchedBucket<JudgeRecord>, 'get'>;
    partitions: number;
    timings?: LiveTimings;
  },
): Judging {
  const { policies, piiPolicies, deletions, judgeRecords, partitions, timings } = parts;
  const now = () => Date.now();
  const upstream = openUpstream({
    base_url: env.SERVICE_LLM_BASE_URL,
    api_key: env.SERVICE_LLM_API_KEY,
    observe: (result, seconds) => {
      metrics.llmCallsTotal.inc({ result });
      metrics.llmCallSeconds.observe(seconds);
    },
  });
  const models = upstream === null ? null : openModels(upstream);
  const live = new LiveJudging({
    log,
    logger,
    clickhouse,
    book: new JudgeVersions(judgeRecords, log),
    cooldown: new Cooldown(log),
    judges: models?.judges ?? null,
    now,
    observe: (outcome) => {
      if (outcome !== 'retried') metrics.judgingTasksTotal.inc({ outcome });
      const result = outcome === 'retried' || outcome === 'dead' ? outcome : 'done';
      metrics.queueMessagesTotal.inc({ queue: 'judging', result });
    },
    onPublished: countPublished,
    ...(timings === undefined ? {} : { timings }),
  });
  live.start();
  return {
    models,
    stop: () => live.stop(),
  };

  function openModels(upstream: Upstream): Models {
    const calls = new RecordedCalls({
      log,
      upstream,
      partitions,
      slots: new FairSlots(CALLS),
      now,
      generationOf: (org_id) => deletions.generationOf(org_id),
      onAnswered: ({ input_tokens, output_tokens }) => {
        metrics.judgingTokensTotal.inc({ direction: 'input' }, input_tokens);
        metrics.judgingTokensTotal.inc({ direction: 'output' }, output_tokens);
      },
    });
    const quotas = new JudgeQuotas(log);
    return {
      upstream,
      calls,
      judges: new LlmJudges({ calls, quotas, policyOf: policies.of, redactorOf: piiPolicies.of, now }),
    };
  }
}

/** Answers calls that judge stored traces by a draft. @returns a function that ends them */
export function answerPreviews(
  { log, clickhouse }: WorkerParts,
  parts: { models: Pick<Models, 'judges'> | null; prices: Pick<Prices, 'of'>; patterns: Runner },
): () => void {
  const previews = new JudgePreviews({
    clickhouse,
    judges: parts.models?.judges ?? null,
    runner: parts.patterns,
    prices: createPriceBook(parts.prices.of),
    now: () => Date.now(),
  });
  return answerPreviewCalls(log.nc, (call, signal) => previews.carryOut(call, signal));
}
