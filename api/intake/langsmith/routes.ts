// Paths of LangSmith that its clients call besides sending runs: what the server supports, and single
// feedback.
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import { ApiError } from '../../http/errors.ts';
import { definePublicRoute, defineRoute, type Route } from '../../http/route.ts';
import { API_VERSION } from '../../http/envelope.ts';
import { feedbackScore, feedbackShape } from './feedback.ts';

const TAG = 'LangSmith';
/** What clients may send in one request. */
const RUNS_AT_ONCE = 100;
const BYTES_AT_ONCE = 4 * 1024 * 1024;

export interface LangsmithRouteDeps {
  /** Stores a score until its trace arrives. @throws ApiError rate_limited */
  queuePending: (score: UserScore) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export function langsmithRoutes(deps: LangsmithRouteDeps): Route[] {
  return [infoRoute(), feedbackRoute(deps)];
}

function infoRoute(): Route {
  const info = z.object({
    version: z.string(),
    batch_ingest_config: z.object({
      use_multipart_endpoint: z.boolean(),
      size_limit: z.int(),
      size_limit_bytes: z.int(),
      scale_up_qsize_trigger: z.int(),
      scale_up_nthreads_limit: z.int(),
      scale_down_nempty_trigger: z.int(),
    }),
    instance_flags: z.object({ gzip_body_enabled: z.boolean(), zstd_compression_enabled: z.boolean() }),
  });
  return definePublicRoute({
    method: 'get',
    path: '/langsmith/info',
    operation_id: 'langsmithInfo',
    summary: 'What the server supports (LangSmith)',
    tag: TAG,
    any_query: true,
    response: info.meta({ id: 'LangsmithInfo' }),
    bare: true,
    handler: () => ({
      bare: {
        version: API_VERSION,
        batch_ingest_config: {
          use_multipart_endpoint: true,
          size_limit: RUNS_AT_ONCE,
          size_limit_bytes: BYTES_AT_ONCE,
          scale_up_qsize_trigger: 1000,
          scale_up_nthreads_limit: 4,
          scale_down_nempty_trigger: 4,
        },
        instance_flags: { gzip_body_enabled: true, zstd_compression_enabled: true },
      },
    }),
  });
}

function feedbackRoute({ queuePending, now }: LangsmithRouteDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/langsmith/feedback',
    operation_id: 'langsmithFeedback',
    summary: 'Create feedback (LangSmith)',
    description: 'Stores the feedback as a score of its trace, also before the trace arrives.',
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.create', target: 'score' },
    any_query: true,
    body: feedbackShape,
    example: { run_id: '0199a1c2-6e40-7000-8000-000000000001', key: 'helpful', score: 1 },
    response: z.looseObject({ id: z.string() }).meta({ id: 'LangsmithFeedback' }),
    bare: true,
    errors: ['rate_limited', 'upstream_unavailable'],
    handler: async ({ body, credential, audit }) => {
      const score = feedbackScore(body, { credential, received_at: now() });
      await queuePending(score).catch((cause: unknown) => {
        if (cause instanceof ApiError) throw cause;
        throw new ApiError('upstream_unavailable', 'The feedback could not be stored. Send it again.', { cause });
      });
      audit.target(score.score_id);
      audit.changes({ trace_id: score.trace_id, span_id: score.span_id });
      return { bare: { ...body, id: body.id ?? score.score_id } };
    },
  });
}
