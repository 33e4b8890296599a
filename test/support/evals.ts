// An eval worker for tests, in this process or in its own process, which a test can kill.
import { type ChildProcess, fork } from 'node:child_process';
import { JudgeQuotas } from '../../ops/exchange/judge_quota.ts';
import { openUpstream } from '../../ops/platform/llm/upstream.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { fixedPartitions, openLog } from '../../ops/platform/nats/open_log.ts';
import { PatternRunner } from '../../ops/platform/pattern_runner.ts';
import { createPriceBook } from '../../pipeline/domain/pricing/pricing.ts';
import { openEvals } from '../../pipeline/evals/open.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import { LlmJudges } from '../../pipeline/judging/llm_judges.ts';
import { RecordedCalls } from '../../pipeline/judging/llm_recorded_calls.ts';
import { openPolicies } from '../../pipeline/settings/org_policies.ts';
import { createClickHouse } from '../../sql/client/client.ts';

/** Maximum number of model calls that a worker has in flight for one organization. */
export const CALLS_AT_ONCE = 4;

export interface EvalWorkerOptions {
  natsUrl: string;
  clickhouseUrl: string;
  /** Default: the worker has no upstream. */
  llmUrl?: string | undefined;
}

export interface TestEvalWorker {
  /** Shuts the worker down as a SIGTERM does. */
  stop: () => Promise<void>;
}

/** Starts a worker in this process. It is always the leader. */
export async function startEvalWorker({ natsUrl, clickhouseUrl, llmUrl }: EvalWorkerOptions): Promise<TestEvalWorker> {
  const nc = await connectNats({ url: natsUrl, name: 'eval-worker', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
  const clickhouse = createClickHouse({ url: clickhouseUrl });
  const policies = await openPolicies(log, () => undefined);
  const partitions = await fixedPartitions(log, 4);
  const now = () => Date.now();
  const upstream = openUpstream({ base_url: llmUrl, api_key: undefined });
  const calls =
    upstream === null
      ? null
      : new RecordedCalls({
          log,
          upstream,
          partitions,
          slots: new FairSlots({ totalMax: 16, orgMax: CALLS_AT_ONCE }),
          now,
        });
  const patterns = new PatternRunner();
  const evals = await openEvals({
    log,
    logger: createLogger('eval-worker', 'silent'),
    clickhouse,
    llm:
      calls === null
        ? null
        : {
            calls,
            judges: new LlmJudges({
              calls,
              quotas: new JudgeQuotas(log),
              policyOf: policies.of,
              redactorOf: () => null,
              now,
            }),
          },
    spans: { prices: createPriceBook(() => []), maxPromptTokens: () => null, redactorOf: () => null },
    runner: patterns,
    policyOf: policies.of,
    isLeader: () => true,
    observe: () => undefined,
    onScored: () => undefined,
    onPublished: () => undefined,
    now,
    ackWaitMs: 2000,
    lookMs: 250,
  });
  evals.start();
  return {
    stop: async () => {
      await evals.stop();
      policies.close();
      await patterns.close();
      await nc.close();
      await clickhouse.close();
    },
  };
}

/** Starts a worker in its own process. It exits when this process does. */
export async function forkEvalWorker(options: EvalWorkerOptions): Promise<ChildProcess> {
  const child = fork(new URL('./eval_worker.ts', import.meta.url), [JSON.stringify(options)], { silent: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => {
      resolve();
    });
    child.once('exit', (code) => {
      reject(new Error(`the worker ended with ${String(code)}:\n${output}`));
    });
  });
  return child;
}
