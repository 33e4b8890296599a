// LLM judging for tests: writes judges directly into their bucket and tasks directly into their
// queue, starts a judging worker in this process or in its own process, which a test can kill, and
// reads the results from the store and the log.
import { type ChildProcess, fork } from 'node:child_process';
import { parseEnv } from '../../ops/platform/env.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { type Log, openLog } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { INGEST_STREAM, judgingSubject, JUDGING_STREAM } from '../../schemas/streams.ts';
import type { PiiRedactor } from '../../pipeline/domain/pii/pii.ts';
import type { LiveTimings } from '../../pipeline/judging/live_judging.ts';
import { type Judging, startJudging } from '../../pipeline/wiring/judging.ts';
import {
  FINGERPRINT_HEADER,
  ingestBatchCodec,
  type IngestEvent,
  type JudgingTask,
  judgingTaskCodec,
} from '../../schemas/codec.ts';
import { judgeKey, type JudgeRecord } from '../../schemas/records/judge.ts';
import { DEFAULT_POLICY, type Policy } from '../../schemas/records/policy.ts';
import { createClickHouse } from '../../sql/client/client.ts';

export const JUDGING_PARTITIONS = 4;

/** The production timings, shortened. */
export const FAST_TIMINGS: LiveTimings = {
  ackWaitMs: 1500,
  retry: { firstMs: 100, maxMs: 500 },
  giveUpMs: 3_600_000,
  missingMs: 3_600_000,
  stopMs: 100,
};

let judges = 0;

export function aJudge(over: Partial<JudgeRecord> = {}): JudgeRecord {
  judges++;
  const at = new Date().toISOString();
  return {
    org_id: 'org_a',
    judge_id: `judge_${judges}`,
    version: 1,
    name: 'helpful',
    kind: 'llm',
    rule: null,
    prompt_template: 'Was it helpful? {{prompt}} -> {{response}} ({{scale}})',
    model: 'gpt-4o-mini',
    rubric: { scale: [1, 2, 3, 4, 5], criteria: ['helpful', 'true'] },
    threshold: { pass: 4, warn: 3 },
    scope: {},
    cooldown_seconds: 0,
    enabled: true,
    created_at: at,
    updated_at: at,
    ...over,
  };
}

export async function openJudgingLog(natsUrl: string): Promise<Log> {
  return openLog(await connectNats({ url: natsUrl, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });
}

export async function putJudge(log: Log, judge: JudgeRecord): Promise<JudgeRecord> {
  await (await log.bucket('judges')).put(judgeKey(judge.org_id, judge.judge_id), JSON.stringify(judge));
  return judge;
}

let tasks = 0;

/** Enqueues the task of a live trace. */
export async function putTask(
  log: Log,
  judge: JudgeRecord,
  trace_id: string,
  over: Partial<JudgingTask> = {},
): Promise<JudgingTask> {
  tasks++;
  const task: JudgingTask = {
    task_id: `${judge.judge_id}.${judge.version}.${trace_id}.${tasks}`,
    kind: 'live',
    org_id: judge.org_id,
    judge_id: judge.judge_id,
    judge_version: judge.version,
    agent_id: 'booker',
    eval_id: '',
    chunk: 0,
    trace_ids: [trace_id],
    created_at: Date.now(),
    ...over,
  };
  await publishRecord(log, judgingSubject('live'), judgingTaskCodec, task, { msgID: task.task_id, timeoutMs: 5000 });
  return task;
}

/** Returns the number of tasks in the queue, including those in flight. */
export async function tasksLeft(log: Log): Promise<number> {
  return (await log.jsm.streams.info(JUDGING_STREAM)).state.messages;
}

export interface TestJudging {
  judging: Judging;
  log: Log;
  stop(): Promise<void>;
}

/** Starts a judging worker in this process. */
export async function startTestJudging(options: {
  natsUrl: string;
  clickhouseUrl: string;
  upstreamUrl?: string;
  policyOf?: (org_id: string) => Partial<Policy>;
  pii?: PiiRedactor;
  timings?: LiveTimings;
}): Promise<TestJudging> {
  const { natsUrl, clickhouseUrl, upstreamUrl, policyOf = () => ({}), pii = null, timings = FAST_TIMINGS } = options;
  const log = await openJudgingLog(natsUrl);
  const clickhouse = createClickHouse({ url: clickhouseUrl });
  const env = parseEnv({ SERVICE_LLM_BASE_URL: upstreamUrl, SERVICE_LLM_API_KEY: 'sk-of-the-upstream' });
  const logger = createLogger('judging-test', 'silent');
  const judgeRecords = await watch(log, 'judges', () => undefined);
  const judging = startJudging(
    { env, logger, log, clickhouse, workerId: 'w1', onProblem: () => undefined },
    {
      policies: { of: (org_id) => ({ ...DEFAULT_POLICY, ...policyOf(org_id) }) },
      piiPolicies: { of: () => pii },
      deletions: { generationOf: () => '' },
      judgeRecords,
      partitions: JUDGING_PARTITIONS,
      timings,
    },
  );
  return {
    judging,
    log,
    async stop() {
      await judging.stop();
      judgeRecords.close();
      await log.nc.close();
      await clickhouse.close();
    },
  };
}

/** Starts a judging worker in its own process and resolves when it is ready. */
export async function forkJudging(natsUrl: string, clickhouseUrl: string, upstreamUrl: string): Promise<ChildProcess> {
  const child = fork(new URL('./judging_worker.ts', import.meta.url), [], {
    env: { ...process.env, TEST_NATS_URL: natsUrl, TEST_CLICKHOUSE_URL: clickhouseUrl, TEST_UPSTREAM_URL: upstreamUrl },
  });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => {
      resolve();
    });
    child.once('exit', (code) => {
      reject(new Error(`the judging worker ended with ${String(code)}`));
    });
  });
  return child;
}

/** A model call as an event of the ingest log. */
export interface LoggedCall extends IngestEvent {
  event: {
    trace_id: string;
    span_id: string;
    parent_span_id?: string;
    request: { model: string; messages: { role: string; content: string }[] };
    response: { usage?: Record<string, number> };
    attributes: Record<string, unknown>;
  };
}

/**
 * Returns the model calls of an organization's judges in the ingest log, in order. A duplicate
 * event counts once, as in the pipeline.
 */
export async function loggedCalls(log: Log, org_id: string): Promise<LoggedCall[]> {
  const calls = new Map<string, LoggedCall>();
  for (const { data, fingerprint } of await messagesOf(log, INGEST_STREAM)) {
    if (fingerprint !== ingestBatchCodec.fingerprint) continue;
    for (const one of ingestBatchCodec.decode(data, fingerprint).events)
      if (one.org_id === org_id)
        calls.set(one.event_hex, { ...one, event: JSON.parse(one.body) as LoggedCall['event'] });
  }
  return [...calls.values()];
}

async function messagesOf(log: Log, stream: string): Promise<{ data: Uint8Array; fingerprint: string | undefined }[]> {
  const { state } = await log.jsm.streams.info(stream);
  const messages = [];
  for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
    const message = await log.jsm.streams.getMessage(stream, { seq });
    if (message !== null) messages.push({ data: message.data, fingerprint: message.header.get(FINGERPRINT_HEADER) });
  }
  return messages;
}
