// Helpers for tests of evals: an organization with a judge, traces in the store, and callers that
// expect success.
import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { aSpan } from '../../support/spans.ts';
import { type TestStore, tracesOf } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { call, type TestApi } from '../api/an_api.ts';
import { anAccount } from '../a_tenant.ts';

export interface EvalShown {
  eval_id: string;
  judge_id: string;
  judge_version: number;
  status: string;
  queued_traces: number;
  progress: { done: number; total: number };
  stats: {
    total: number;
    passed: number;
    warned: number;
    failed: number;
    errors: number;
    mean_score: number | null;
    p50_score: number | null;
  } | null;
  started_at: string;
  ended_at: string | null;
  error: string | null;
  dataset_id?: string;
  prompt_version?: string | null;
  model?: string;
}

export interface ScoreShown {
  trace_id: string;
  judge_id: string;
  judge_version: number;
  eval_id: string;
  score: number | null;
  verdict: string;
  reason: string;
  scored_at: string;
  item_index?: number;
}

export interface TestOrg {
  org: string;
  headers: Record<string, string | undefined>;
  /** Headers of the owner. */
  owner: Record<string, string | undefined>;
  /** Sends a request that must succeed, and resolves with the `data` of the answer. */
  get: <T>(path: string) => Promise<T>;
  post: <T>(path: string, body: unknown, status?: number) => Promise<T>;
  scores: (eval_id: string, query?: string) => Promise<ScoreShown[]>;
  /** Resolves with the eval once it has ended. */
  ended: (eval_id: string) => Promise<EvalShown>;
}

/** Creates an organization with a key for every scope. */
export async function makeOrg(api: TestApi): Promise<TestOrg> {
  const { org, key: headers, owner } = await anAccount({ api });
  const get = async <T>(path: string): Promise<T> => {
    const answer = await call(api, 'GET', path, { headers });
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
    return answer.json?.['data'] as T;
  };
  return {
    org,
    headers,
    owner,
    get,
    post: async <T>(path: string, given: unknown, status = 200): Promise<T> => {
      const answer = await call(api, 'POST', path, { headers, body: given });
      if (answer.status !== status) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
      return answer.json?.['data'] as T;
    },
    scores: async (eval_id, query = '') => {
      const answer = await call(api, 'GET', `/v1/evals/${eval_id}/scores${query}`, { headers });
      if (answer.status !== 200) throw new Error(`scores: ${answer.status} ${answer.text}`);
      expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
      return answer.text === ''
        ? []
        : answer.text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as ScoreShown);
    },
    ended: async (eval_id) => {
      await eventually(async () => (await get<EvalShown>(`/v1/evals/${eval_id}`)).status !== 'running', {
        what: 'the end of an eval',
      });
      return get<EvalShown>(`/v1/evals/${eval_id}`);
    },
  };
}

/** Creates a deterministic judge of the response; `over` replaces fields of the body. */
export async function makeJudge({ post }: TestOrg, over: Record<string, unknown> = {}): Promise<string> {
  const body = {
    name: 'says ok',
    kind: 'deterministic',
    rule: { type: 'contains', value: 'ok' },
    threshold: { pass: 1 },
    enabled: false,
    ...over,
  };
  return (await post<{ judge_id: string }>('/v1/judges', body, 201)).judge_id;
}

/**
 * Lands traces of one span each, as a worker does.
 * @returns the ids of the traces
 */
export async function landTraces(
  store: TestStore,
  org_id: string,
  traces: readonly { response: string; started_at?: number; trace_id?: string }[],
): Promise<string[]> {
  const now = Date.now();
  const spans = traces.map(
    ({ response, started_at = now - 60_000, trace_id = `trc_${randomBytes(8).toString('hex')}` }) =>
      aSpan({ org_id, trace_id, response, started_at, ended_at: started_at + 100, received_at: started_at + 200 }),
  );
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
  return spans.map(({ trace_id }) => trace_id);
}
