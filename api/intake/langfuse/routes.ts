// Paths of Langfuse that its clients call besides telemetry: health, projects, scores, media, and
// datasets with the runs of experiments. prompt_routes.ts serves prompts, ingestion.ts batches.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { UserScore } from '../../../schemas/codec.ts';
import type { DatasetItem, DatasetRecord } from '../../../schemas/records/dataset.ts';
import { authorOf } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { API_VERSION } from '../../http/envelope.ts';
import { definePublicRoute, defineRoute, type Route } from '../../http/route.ts';
import { foreignTraceId, userScoreOf } from '../compat/score.ts';
import { langfusePromptRoutes, type LangfusePromptsDeps } from './prompt_routes.ts';
import { scoreOf, scoresOf, SCORES_MAX, scoresShape } from './scores.ts';
import { listMeta, pageMetaOf, pageOf, pageQuery, TAG } from './shapes.ts';

export interface LangfuseDeps extends LangfusePromptsDeps {
  /** Stores a score until its trace arrives, or at once if it has. @throws ApiError rate_limited */
  queuePending: (score: UserScore) => Promise<void>;
  /** Returns the name of an organization. */
  orgName: (org_id: string) => string;
  /** Returns the datasets of an organization, newest first. */
  datasets: (org_id: string) => DatasetRecord[];
  /** Resolves with the items of a dataset from one position up to, but not including, another. */
  datasetItems: (record: DatasetRecord, from: number, to: number) => Promise<DatasetItem[]>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Scores of a list that are stored at a time. */
const AT_ONCE = 50;
/** Name of the score that links a trace to a run of an experiment. */
const RUN_SCORE = 'dataset_run';

export function langfuseRoutes(deps: LangfuseDeps): Route[] {
  return [
    healthRoute(),
    projectsRoute(deps),
    scoreRoute(deps),
    mediaRoute(),
    datasetsRoute(deps),
    datasetRoute(deps),
    itemsRoute(deps),
    runItemRoute(deps),
    ...langfusePromptRoutes(deps),
  ];
}

function healthRoute(): Route {
  return definePublicRoute({
    method: 'get',
    path: '/api/public/health',
    operation_id: 'langfuseHealth',
    summary: 'Health (Langfuse)',
    tag: TAG,
    any_query: true,
    response: z.object({ status: z.literal('OK'), version: z.string() }).meta({ id: 'LangfuseHealth' }),
    bare: true,
    handler: () => ({ bare: { status: 'OK' as const, version: API_VERSION } }),
  });
}

function projectsRoute({ orgName }: LangfuseDeps): Route {
  const project = z.looseObject({ id: z.string(), name: z.string(), metadata: z.record(z.string(), z.unknown()) });
  return defineRoute({
    method: 'get',
    path: '/api/public/projects',
    operation_id: 'langfuseProjects',
    summary: 'Get the project of the key (Langfuse)',
    description: 'An organization of this service is one project.',
    tag: TAG,
    permission: 'ingest:write',
    any_query: true,
    response: z.object({ data: z.array(project) }).meta({ id: 'LangfuseProjects' }),
    bare: true,
    handler: ({ org_id }) => {
      const name = orgName(org_id);
      return { bare: { data: [{ id: org_id, name, organization: { id: org_id, name }, metadata: {} }] } };
    },
  });
}

function scoreRoute({ queuePending, now }: LangfuseDeps): Route {
  const many = z.object({ accepted: z.int(), rejected: z.int(), errors: z.array(z.object({ message: z.string() })) });
  const answer = z.union([z.object({ id: z.string() }), z.object({ message: z.literal('Accepted') }), many]);
  return defineRoute({
    method: 'post',
    path: '/api/public/scores',
    operation_id: 'langfuseScore',
    summary: 'Create scores (Langfuse)',
    description: `Stores a score of a trace or an observation, or a list of at most ${SCORES_MAX}, also before the trace arrives.`,
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.create', target: 'score' },
    any_query: true,
    body: scoresShape,
    example: { traceId: '5b8efff798038103d269b633813fc60c', name: 'helpful', value: 1, dataType: 'BOOLEAN' },
    response: answer.meta({ id: 'LangfuseScore' }),
    also: { 202: 'Every score of a list is stored.', 207: 'Some scores of a list are stored; the others are not.' },
    bare: true,
    errors: ['rate_limited', 'upstream_unavailable'],
    handler: async ({ body, credential, audit, request_id }) => {
      const asked = { credential, key: request_id, now: now() };
      if (!Array.isArray(body)) {
        const score = scoreOf(body, { ...asked, given_at: NaN });
        await stored(queuePending(score));
        audit.target(score.score_id);
        audit.changes({ trace_id: score.trace_id, span_id: score.span_id });
        const { id } = body as { id?: string | null };
        return { bare: { id: id ?? score.score_id } };
      }
      const { scores, errors } = scoresOf(body as unknown[], asked);
      for (let from = 0; from < scores.length; from += AT_ONCE)
        await Promise.all(scores.slice(from, from + AT_ONCE).map((score) => stored(queuePending(score))));
      if (scores[0] === undefined) audit.nothing();
      else audit.target(scores[0].score_id);
      audit.changes({ scores: scores.length });
      return errors.length === 0
        ? { status: 202, bare: { message: 'Accepted' as const } }
        : { status: 207, bare: { accepted: scores.length, rejected: errors.length, errors } };
    },
  });
}

function mediaRoute(): Route {
  const shape = z.looseObject({ sha256Hash: z.string().min(1).max(200) });
  return defineRoute({
    method: 'post',
    path: '/api/public/media',
    operation_id: 'langfuseMedia',
    summary: 'Announce media (Langfuse)',
    description:
      'Media are not stored. The answer says that the file exists, so that clients do not send it: its bytes are not kept anywhere. Set `LANGFUSE_MEDIA_UPLOAD_ENABLED=false` in the client to keep media in the text of a span.',
    tag: TAG,
    permission: 'ingest:write',
    audit: null,
    any_query: true,
    body: shape,
    status: 201,
    response: z.object({ mediaId: z.string(), uploadUrl: z.null() }).meta({ id: 'LangfuseMedia' }),
    bare: true,
    handler: ({ body }) => ({ bare: { mediaId: mediaIdOf(body.sha256Hash), uploadUrl: null } }),
  });
}

/** Returns the id that Langfuse's clients compute: the first 22 characters of the hash in base64url. */
const mediaIdOf = (hash: string): string => hash.replaceAll('+', '-').replaceAll('/', '_').slice(0, 22);

const dataset = z
  .looseObject({ id: z.string(), name: z.string(), projectId: z.string() })
  .meta({ id: 'LangfuseDataset' });

const shownDataset = ({ org_id, dataset_id, name, version, created_at }: DatasetRecord) => ({
  id: dataset_id,
  name,
  description: null,
  metadata: { version },
  inputSchema: null,
  expectedOutputSchema: null,
  projectId: org_id,
  createdAt: created_at,
  updatedAt: created_at,
});

/** Returns the newest version of each dataset. */
function newestDatasets(records: readonly DatasetRecord[]): DatasetRecord[] {
  const seen = new Set<string>();
  return records.filter(({ name }) => !seen.has(name) && seen.add(name));
}

/** @throws ApiError dataset_not_found */
function newestNamed({ datasets }: LangfuseDeps, org_id: string, name: string): DatasetRecord {
  const record = datasets(org_id).find((one) => one.name === name);
  if (record === undefined) throw new ApiError('dataset_not_found', `There is no dataset ${name}.`);
  return record;
}

function datasetsRoute(deps: LangfuseDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/api/public/v2/datasets',
    operation_id: 'langfuseDatasets',
    summary: 'List datasets (Langfuse)',
    description: 'Returns the newest version of each dataset. Create datasets at `POST /v1/datasets`.',
    tag: TAG,
    permission: 'datasets:read',
    any_query: true,
    query: pageQuery,
    response: z.object({ data: z.array(dataset), meta: listMeta }).meta({ id: 'LangfuseDatasets' }),
    bare: true,
    handler: ({ org_id, query }) => ({
      bare: pageOf(newestDatasets(deps.datasets(org_id)).map(shownDataset), query),
    }),
  });
}

function datasetRoute(deps: LangfuseDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/api/public/v2/datasets/:name',
    operation_id: 'langfuseGetDataset',
    summary: 'Get a dataset (Langfuse)',
    description: 'Returns the newest version of the dataset.',
    tag: TAG,
    permission: 'datasets:read',
    any_query: true,
    params: z.object({ name: z.string() }),
    response: dataset,
    bare: true,
    errors: ['dataset_not_found'],
    handler: ({ org_id, params }) => ({ bare: shownDataset(newestNamed(deps, org_id, params.name)) }),
  });
}

function itemsRoute(deps: LangfuseDeps): Route {
  const item = z.looseObject({ id: z.string(), datasetId: z.string(), datasetName: z.string() });
  return defineRoute({
    method: 'get',
    path: '/api/public/dataset-items',
    operation_id: 'langfuseDatasetItems',
    summary: 'List items of a dataset (Langfuse)',
    description: 'Returns the items of the newest version of the dataset that `datasetName` names.',
    tag: TAG,
    permission: 'datasets:read',
    any_query: true,
    query: pageQuery.extend({ datasetName: z.string().min(1) }),
    response: z.object({ data: z.array(item), meta: listMeta }).meta({ id: 'LangfuseItems' }),
    bare: true,
    errors: ['dataset_not_found'],
    handler: async ({ org_id, query }) => {
      const record = newestNamed(deps, org_id, query.datasetName);
      const from = (query.page - 1) * query.limit;
      const to = Math.min(record.item_count, from + query.limit);
      const items = from >= to ? [] : await deps.datasetItems(record, from, to);
      const data = items.map((one, i) => ({
        id: `${record.dataset_id}-${from + i}`,
        status: 'ACTIVE',
        input: one.input,
        expectedOutput: one.expected ?? null,
        metadata: one.metadata,
        sourceTraceId: null,
        sourceObservationId: null,
        datasetId: record.dataset_id,
        datasetName: record.name,
        mediaReferences: [],
        createdAt: record.created_at,
        updatedAt: record.created_at,
      }));
      return { bare: { data, meta: pageMetaOf(record.item_count, query) } };
    },
  });
}

function runItemRoute({ queuePending, now }: LangfuseDeps): Route {
  const shape = z.looseObject({
    runName: z.string().min(1).max(1000),
    datasetItemId: z.string().min(1).max(200),
    traceId: foreignTraceId.nullish(),
    observationId: z.string().max(128).nullish(),
  });
  return defineRoute({
    method: 'post',
    path: '/api/public/dataset-run-items',
    operation_id: 'langfuseDatasetRunItem',
    summary: 'Link a trace to a run of an experiment (Langfuse)',
    description: `Stores the link as a score of the trace with the name \`${RUN_SCORE}\`, the run as its category and the item as its comment.`,
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'score.create', target: 'score' },
    any_query: true,
    body: shape,
    example: { runName: 'Tuesday', datasetItemId: 'ds_1-0', traceId: '5b8efff798038103d269b633813fc60c' },
    response: z.looseObject({ id: z.string(), datasetRunId: z.string() }).meta({ id: 'LangfuseRunItem' }),
    bare: true,
    errors: ['rate_limited', 'upstream_unavailable'],
    handler: async ({ org_id, body, credential, audit }) => {
      if (body.traceId == null) throw new ApiError('invalid_request', 'traceId: is needed to link a run to a trace');
      const score = userScoreOf({
        org_id,
        key: `${RUN_SCORE}\n${body.runName}\n${body.datasetItemId}\n${body.traceId}`,
        trace_id: body.traceId,
        span_id: body.observationId ?? '',
        name: RUN_SCORE,
        value: body.runName,
        comment: body.datasetItemId,
        author: authorOf(credential),
        given_at: NaN,
        now: now(),
      });
      await stored(queuePending(score));
      audit.target(score.score_id);
      audit.changes({ trace_id: score.trace_id, run: body.runName });
      const at = new Date(now()).toISOString();
      return {
        bare: {
          id: score.score_id,
          datasetRunId: createHash('sha256').update(`${org_id}\n${body.runName}`).digest('hex').slice(0, 32),
          datasetRunName: body.runName,
          datasetItemId: body.datasetItemId,
          traceId: body.traceId,
          observationId: body.observationId ?? null,
          createdAt: at,
          updatedAt: at,
        },
      };
    },
  });
}

/** Waits for a score to be stored. @throws ApiError rate_limited, upstream_unavailable */
async function stored(queued: Promise<void>): Promise<void> {
  await queued.catch((cause: unknown) => {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError('upstream_unavailable', 'The score could not be stored. Send it again.', { cause });
  });
}
