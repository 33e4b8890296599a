// Wires judges, evals, datasets, and the prompts that dataset runs use.
import { isJudgeQuotaUsedUp, judgeCallsUsed } from '../../ops/exchange/judge_quota.ts';
import { callPreview } from '../../ops/exchange/preview_calls.ts';
import { periodAt } from '../../pipeline/domain/budgets/period.ts';
import { datasetRoutes } from '../control/datasets/routes.ts';
import { VERSIONS_AT_ONCE } from '../control/datasets/versions.ts';
import { answered, beginRun } from '../control/evals/evals.ts';
import { evalRoutes } from '../control/evals/routes.ts';
import { evalItem } from '../control/evals/schema.ts';
import type { EstimateDeps } from '../control/evals/estimate.ts';
import { judgeBy, type PreviewDeps } from '../control/judges/preview.ts';
import { judgeRoutes } from '../control/judges/routes.ts';
import { promptRoutes } from '../control/prompts/routes.ts';
import { OrgSlots } from '../http/org_slots.ts';
import type { Route } from '../http/route.ts';
import type { WrittenAnswers } from '../http/written_answers.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export function judgingRoutes(
  { env, log, clickhouse, now, onProblem }: WiringParts,
  stores: Stores,
  written: WrittenAnswers,
): Route[] {
  const { judges, evals, datasets, prompts, policies, grants } = stores;
  const preview: PreviewDeps['preview'] = (call, options) => callPreview(log.nc, call, options);
  const hasUpstream = env.SERVICE_LLM_BASE_URL !== undefined;
  const evalsDeps: EstimateDeps = {
    evals,
    clickhouse,
    judgeOf: (org_id: string, judge_id: string) => judges.get(org_id, judge_id),
    quotaUsedUpUntil: async (org_id: string) => {
      const policy = policies.get(org_id);
      const { start, end } = periodAt(policy, now());
      const quota = { org_id, limit: policy.judge_quota_calls, period_start: start };
      return (await isJudgeQuotaUsedUp(log, quota)) ? end : null;
    },
    hasUpstream,
    priceOf: (org_id, judge, trace_ids, signal) =>
      judgeBy({ preview, hasUpstream }, { org_id, judge, trace_ids: [...trace_ids], dry: true }, signal),
    written,
    now,
    onProblem,
  };
  const runningEvals = {
    known: (org_id: string) => evals.list(org_id).filter(({ status }) => status === 'running'),
    stored: (org_id: string) => evals.runningNow(org_id),
  };
  const datasetsDeps = {
    datasets,
    versionSlots: new OrgSlots(VERSIONS_AT_ONCE),
    promptOf: (org_id: string, ref: string) => prompts.resolve(org_id, ref),
    beginRun: beginRun.bind(null, evalsDeps),
    runningEvals,
    removeGrants: (org_id: string, dataset_id: string) => grants.removeOn(org_id, { type: 'dataset', id: dataset_id }),
    now,
  };
  return [
    judgeRoutes({
      judges,
      clickhouse,
      preview,
      quotaOf: async (org_id) => {
        const policy = policies.get(org_id);
        const { start, end } = periodAt(policy, now());
        const used = await judgeCallsUsed(log, { org_id, period_start: start });
        return { limit: policy.judge_quota_calls, used, end };
      },
      hasUpstream,
      now,
    }),
    evalRoutes(evalsDeps),
    datasetRoutes(datasetsDeps, { item: evalItem, answered: answered.bind(null, evalsDeps) }),
    promptRoutes({ store: prompts, runningEvals: runningEvals.stored, clickhouse, now }),
  ].flat();
}
