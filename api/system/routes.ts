// Declares the routes of the process itself, for operators and tools: health, readiness, metrics,
// and the API reference with the documentation.
import { z } from 'zod';
import { registry } from '../../ops/platform/metrics.ts';
import { joinExpositions } from '../../ops/platform/metrics_text.ts';
import { inlinePagePolicy } from '../../ops/platform/security_headers.ts';
import { sendText } from '../http/compress.ts';
import { API_VERSION } from '../http/envelope.ts';
import { ApiError } from '../http/errors.ts';
import { type Context, definePublicRoute, type Route, STREAMED } from '../http/route.ts';
import { DOCS_SCRIPT } from '../openapi/docs_script.ts';
import { DOCS_CSS } from '../openapi/docs_style.ts';
import type { ApiReference } from '../openapi/reference.ts';
import type { DocPages } from '../openapi/doc_pages.ts';
import { readiness, type ReadinessWatch } from './readiness.ts';
import { type StatusDeps, statusRoutes } from './status.ts';

/** The documentation has one inline style, and the reference one inline script. */
const DOCS_POLICY = inlinePagePolicy(DOCS_CSS, DOCS_SCRIPT);
/** Guides show pictures of the service itself. */
const GUIDE_POLICY = `${DOCS_POLICY}; img-src 'self'`;
/**
 * Maximum time for a worker to answer with its metrics; a slower worker is left out of the
 * response.
 */
const WORKER_METRICS_MS_MAX = 500;

export interface SystemDeps {
  /** Returns true once this process has begun to shut down. */
  isDraining: () => boolean;
  readiness: Pick<ReadinessWatch, 'check' | 'metricsUrls'>;
  reference: Pick<ApiReference, 'json' | 'html'>;
  /** The guides and the pages for operators. */
  pages: Pick<DocPages, 'html' | 'picture'>;
  status: StatusDeps;
}

/** Declares every route of the process itself. */
export function systemRoutes(deps: SystemDeps): Route[] {
  return [...healthRoutes(deps), metricsRoute(deps), ...statusRoutes(deps.status), ...referenceRoutes(deps)];
}

function healthRoutes({ readiness: watch, isDraining }: SystemDeps): Route[] {
  return [
    definePublicRoute({
      method: 'get',
      path: '/healthz',
      operation_id: 'health',
      summary: 'Check that the process takes requests',
      description:
        'Returns 200 with the status `ok`, or 503 with the status `draining` once the process has begun to shut down. It still answers requests then, for SERVICE_DRAIN_DELAY_MS, so that load balancers have time to take it out.',
      tag: 'System',
      any_query: true,
      bare: true,
      also: { 503: 'The process is shutting down' },
      response: z.object({ status: z.enum(['ok', 'draining']), version: z.string() }),
      handler: () =>
        isDraining()
          ? { status: 503, bare: { status: 'draining' as const, version: API_VERSION } }
          : { status: 200, bare: { status: 'ok' as const, version: API_VERSION } },
    }),
    definePublicRoute({
      method: 'get',
      path: '/readyz',
      operation_id: 'ready',
      summary: 'Check that the service is ready',
      description:
        'Returns 200 when all checks are ok, otherwise 503 with the same body. Once a process has answered 200, job calls find a worker and hard limits are decided. Ingest continues without ClickHouse and without workers, so point the health checks of a load balancer at `/healthz`.',
      tag: 'System',
      any_query: true,
      bare: true,
      also: { 503: 'A check is not ok' },
      response: readiness,
      handler: async () => {
        const state = await watch.check();
        return { status: state.status === 'ready' ? 200 : 503, bare: state };
      },
    }),
  ];
}

function metricsRoute({ readiness: watch }: SystemDeps): Route {
  return definePublicRoute({
    method: 'get',
    path: '/metrics',
    operation_id: 'metrics',
    summary: 'Get the metrics of the API and the pipeline workers',
    tag: 'System',
    any_query: true,
    media: ['text/plain'],
    response: z.string(),
    handler: async (ctx) => streamText(ctx, await allMetrics(watch.metricsUrls()), registry.contentType),
  });
}

function referenceRoutes({ reference, pages }: SystemDeps): Route[] {
  return [
    definePublicRoute({
      method: 'get',
      path: '/openapi.json',
      operation_id: 'openapi',
      summary: 'This document',
      tag: 'System',
      any_query: true,
      media: ['application/json'],
      response: z.looseObject({}),
      handler: (ctx) => streamText(ctx, reference.json, 'application/json; charset=utf-8'),
    }),
    definePublicRoute({
      method: 'get',
      path: '/docs',
      operation_id: 'docs',
      summary: 'Get the API reference as a page',
      tag: 'System',
      any_query: true,
      media: ['text/html'],
      response: z.string(),
      handler: (ctx) => {
        ctx.res.setHeader('Content-Security-Policy', DOCS_POLICY);
        return streamText(ctx, reference.html, 'text/html; charset=utf-8');
      },
    }),
    definePublicRoute({
      method: 'get',
      path: '/docs/:section/:page',
      operation_id: 'docsPage',
      summary: 'Get a page of the documentation, or a picture of one',
      tag: 'System',
      any_query: true,
      params: z.object({ section: z.string(), page: z.string() }),
      media: ['text/html', 'image/png'],
      response: z.string(),
      errors: ['not_found'],
      handler: (ctx) => {
        const picture = ctx.params.section === 'pictures' ? pages.picture(ctx.params.page) : null;
        if (picture !== null) {
          ctx.res.writeHead(200, { 'Content-Type': 'image/png', 'Cache-Control': 'max-age=3600' }).end(picture);
          return STREAMED;
        }
        const html = pages.html(ctx.params.section, ctx.params.page);
        if (html === null) throw new ApiError('not_found', 'There is no such page. /docs lists all pages.');
        ctx.res.setHeader('Content-Security-Policy', GUIDE_POLICY);
        return streamText(ctx, html, 'text/html; charset=utf-8');
      },
    }),
  ];
}

async function streamText(
  { res }: Pick<Context<unknown, unknown, unknown, unknown>, 'res'>,
  text: string,
  type: string,
): Promise<typeof STREAMED> {
  await sendText(res, 200, text, { 'Content-Type': type });
  return STREAMED;
}

async function allMetrics(urls: readonly string[]): Promise<string> {
  const others = await Promise.all(
    urls.map(async (url) => {
      try {
        const answer = await fetch(url, { signal: AbortSignal.timeout(WORKER_METRICS_MS_MAX) });
        return answer.ok ? await answer.text() : '';
      } catch {
        // The worker has just ended; its absence shows in the metrics themselves.
        return '';
      }
    }),
  );
  return joinExpositions([await registry.metrics(), ...others]);
}
