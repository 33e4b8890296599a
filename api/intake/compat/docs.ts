// The documentation of the paths on which clients of other services send telemetry. handler.ts serves
// them.
import { z } from 'zod';
import type { RouteDoc } from '../../openapi/document.ts';

const result = z.object({ id: z.string(), status: z.int() });
const batchAnswer = z
  .object({
    successes: z.array(result),
    errors: z.array(result.extend({ message: z.string(), error: z.string() })),
  })
  .meta({ id: 'LangfuseBatchAnswer' });
const batch = z
  .object({
    batch: z.array(
      z.looseObject({
        id: z.string(),
        type: z.string().describe('score-create, trace-create, span-create, generation-update, …'),
        timestamp: z.iso.datetime(),
        body: z.record(z.string(), z.unknown()),
      }),
    ),
  })
  .meta({ id: 'LangfuseBatch' });
const run = z.looseObject({ id: z.string(), trace_id: z.string().optional(), name: z.string().optional() });
const accepted = z.object({ message: z.string() }).meta({ id: 'LangsmithAccepted' });

const common = {
  access: 'ingest:write',
  params: z.object({}),
  query: z.object({}),
  any_query: true,
  bare: true,
  keyless: true,
  audit: null,
  errors: ['invalid_request', 'rate_limited', 'payment_required', 'upstream_unavailable'],
} as const;

export const COMPAT_DOCS: readonly RouteDoc[] = [
  {
    ...common,
    method: 'post',
    path: '/api/public/ingestion',
    operation_id: 'langfuseIngestion',
    summary: 'Send a batch (Langfuse)',
    description:
      'Takes the batches of the clients of Langfuse: scores, and the traces, spans, generations and events of the older clients, whose creations and updates become one span each. Answers 207 with one result for each item; an item that fails does not fail the others.',
    tag: 'Langfuse',
    body: batch,
    response: batchAnswer,
    status: 207,
    example: {
      batch: [
        {
          id: '0f8fad5b-d9cb-469f-a165-70867728950e',
          type: 'score-create',
          timestamp: '2026-01-01T00:00:00Z',
          body: { traceId: '5b8efff798038103d269b633813fc60c', name: 'helpful', value: 1 },
        },
      ],
    },
  },
  {
    ...common,
    method: 'post',
    path: '/langsmith/runs/multipart',
    operation_id: 'langsmithMultipart',
    summary: 'Send runs in parts (LangSmith)',
    description:
      'Takes multipart/form-data with parts named post.<id>, patch.<id>, post.<id>.inputs and so on, attachment.<id>.<name> and feedback.<id>, optionally compressed with gzip or zstd. The bytes of attachments are not stored.',
    tag: 'LangSmith',
    body: z.looseObject({}),
    response: accepted,
    status: 202,
    example: {},
  },
  {
    ...common,
    method: 'post',
    path: '/langsmith/runs/batch',
    operation_id: 'langsmithBatch',
    summary: 'Send runs (LangSmith)',
    tag: 'LangSmith',
    body: z.object({ post: z.array(run).optional(), patch: z.array(run).optional() }).meta({ id: 'LangsmithBatch' }),
    response: accepted,
    status: 202,
    example: { post: [{ id: '0199a1c2-6e40-7000-8000-000000000001', name: 'chain', run_type: 'chain' }] },
  },
  {
    ...common,
    method: 'post',
    path: '/langsmith/runs',
    operation_id: 'langsmithRun',
    summary: 'Send a run (LangSmith)',
    tag: 'LangSmith',
    body: run.meta({ id: 'LangsmithRun' }),
    response: accepted,
    status: 202,
    example: { id: '0199a1c2-6e40-7000-8000-000000000001', name: 'chain', run_type: 'chain' },
  },
  {
    ...common,
    method: 'patch',
    path: '/langsmith/runs/{id}',
    operation_id: 'langsmithPatchRun',
    summary: 'Change a run (LangSmith)',
    tag: 'LangSmith',
    params: z.object({ id: z.string() }),
    body: z.looseObject({}),
    response: accepted,
    status: 202,
    example: { end_time: '2026-01-01T00:00:01Z' },
  },
];
