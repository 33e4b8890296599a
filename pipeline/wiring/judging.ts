// LLM judging of a worker: the upstream, what is shared by all who call it, and the judging of live traces.
import { openUpstream, type Upstream } from '../../ops/platform/llm/upstream.ts';
import { JudgeQuotas } from '../../ops/exchange/judge_quota.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import { Cooldown } from '../judging/live_cooldown.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import { JudgeVersions } from '../judging/llm_judge_versions.ts';
import { LiveJudging, type LiveTimings } from '../judging/live_judging.ts';
import { LlmJudges } from '../judging/llm_judges.ts';
import { RecordedCalls } from '../judging/llm_recorded_calls.ts';
import type { PiiPolicies } from '../settings/pii_policies.ts';
import type { Policies } from '../settings/org_policies.ts';
import { onTold, type WorkerParts } from './parts.ts';

/** Calls of models under way in this process, of all orgs and of one. */
const CALLS = { totalMax: 16, orgMax: 4 };

/** What calls models; null without an upstream. */
export interface Models {
  upstream: Upstream;
  /** Calls that are recorded as spans: of judges, and of others on their own. */
  calls: RecordedCalls;
  judges: LlmJudges;
}

export interface Judging {
  models: Models | null;
  /** Ends what is under way within seconds; the rest is another worker's. */
  stop: () => Promise<void>;
}

export async function startJudging(
  { env, log, logger, clickhouse, onProblem }: WorkerParts,
  parts: {
    policies: Pick<Policies, 'of'>;
    piiPolicies: Pick<PiiPolicies, 'of'>;
    deletions: Pick<OrgDeletions, 'generationOf'>;
    partitions: number;
    timings?: LiveTimings;
  },
): Promise<Judging> {
  const { policies, piiPolicies, deletions, partitions, timings } = parts;
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
  const book = await JudgeVersions.open(log, onProblem);
  const live = new LiveJudging({
    log,
    logger,
    clickhouse,
    book,
    cooldown: new Cooldown(log),
    judges: models?.judges ?? null,
    now,
    observe: (outcome) => {
      if (outcome !== 'retried') metrics.judgingTasksTotal.inc({ outcome });
      const result = outcome === 'retried' || outcome === 'dead' ? outcome : 'done';
      metrics.queueMessagesTotal.inc({ queue: 'judging', result });
    },
    onTold,
    ...(timings === undefined ? {} : { timings }),
  });
  live.start();
  return {
    models,
    stop: async () => {
      await live.stop();
      book.close();
    },
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
