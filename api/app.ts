// The API, built from its dependencies: one function that answers every request. It opens nothing and never listens.
// Ingest, OTLP, the gateway and analysts' queries are dispatched ahead of Express, as they have to be fast; everything else is declared routes on Express 5.
import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { type AnalystsDeps, createAnalystsHandler, isForAnalysts } from './telemetry/analysts/handler.ts';
import { GATEWAY_DOCS } from './intake/gateway/docs.ts';
import { createGatewayHandler, type GatewayDeps } from './intake/gateway/handler.ts';
import { gatewayPathOf } from './intake/gateway/paths.ts';
import { createCors } from './http/cors.ts';
import { takeForeignCredential, unsupported } from './http/foreign.ts';
import { ApiError } from './http/errors.ts';
import { answerError, attend, type EdgeDeps, mark, mountRoutes } from './http/mount.ts';
import { newRequestId } from './http/request_id.ts';
import type { Route } from './http/route.ts';
import { hasOperatorCookie } from './http/operator_session.ts';
import { isByCookie } from './http/session_cookie.ts';
import { COMPAT_DOCS } from './intake/compat/docs.ts';
import { createCompatDispatcher, type Protocol } from './intake/compat/handler.ts';
import { INGEST_DOCS } from './intake/ingest/docs.ts';
import { createIngestHandler, ingestPathOf, type IngestDeps } from './intake/ingest/handler.ts';
import { storeEvents } from './intake/ingest/store.ts';
import { OTLP_DOCS } from './intake/otlp/docs.ts';
import { createOtlpHandler, type OtlpDeps } from './intake/otlp/handler.ts';
import { otlpPathOf } from './intake/otlp/signals.ts';
import { openDocPages } from './openapi/doc_pages.ts';
import { ApiReference } from './openapi/reference.ts';
import { createMcp, isForMcp, type McpDeps } from './mcp/handler.ts';
import type { Portal } from './portal/routes.ts';
import type { ReadinessWatch } from './system/readiness.ts';
import type { StatusDeps } from './system/status.ts';
import { systemRoutes } from './system/routes.ts';

export interface AppDeps {
  edge: EdgeDeps;
  ingest: Omit<IngestDeps, 'edge'> & Pick<OtlpDeps, 'queuePending'>;
  gateway: Omit<GatewayDeps, 'edge'>;
  analysts: Omit<AnalystsDeps, 'edge'>;
  mcp: Pick<McpDeps, 'hasProvider' | 'publicUrl' | 'runSql'>;
  readiness: Pick<ReadinessWatch, 'check' | 'metricsUrls'>;
  /** Returns true once this process has begun to shut down. */
  isDraining: () => boolean;
  status: StatusDeps;
  /** Origins whose pages may call every path. */
  corsOrigins: readonly string[];
  /** Protocols of other services whose clients send telemetry. */
  protocols: readonly Protocol[];
  /** Null: no portal is served. */
  portal: Portal | null;
  /** Routes of the slices. */
  routes: readonly Route[];
}

export type RequestListener = (req: IncomingMessage, res: ServerResponse) => void;

export interface App {
  listener: RequestListener;
  /** Ends the open streams of MCP clients. */
  endStreams: () => Promise<void>;
}

/** Returns what both servers of OTLP depend on, over HTTP and over gRPC. */
export function otlpDeps({ edge, ingest }: Pick<AppDeps, 'edge' | 'ingest'>): OtlpDeps {
  return {
    ...ingest,
    edge,
    store: (request, events, spentMs) => storeEvents(ingest.publisher, request, events, spentMs),
  };
}

/** Builds the API. */
export function createApp(deps: AppDeps): App {
  const { edge } = deps;
  const pages = openDocPages();
  const reference = new ApiReference();
  const routes = [...deps.routes, ...systemRoutes({ ...deps, reference, pages })];
  reference.describe([...INGEST_DOCS, ...OTLP_DOCS, ...GATEWAY_DOCS, ...COMPAT_DOCS, ...routes], pages.nav);

  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple');
  app.use((req, res, next) => {
    attend(req, res, newRequestId(), edge);
    next();
  });
  mountRoutes(app, routes, edge);
  app.use(async (req, res) => {
    const wantsPage = req.accepts(['json', 'html']) === 'html';
    try {
      const foreign = unsupported(req.path);
      if (foreign !== null) throw foreign;
      const answered = (await deps.portal?.answer(req, res, req.path, wantsPage)) ?? null;
      if (answered !== null) {
        mark(res, answered);
        return;
      }
    } catch (error) {
      await answerError(req, res, error, edge);
      return;
    }
    // Without a portal, a person who opens the address in a browser is led to the documentation.
    if (req.method === 'GET' && req.path === '/' && wantsPage) res.redirect(302, '/docs');
    else await answerError(req, res, new ApiError('not_found', 'There is no such path.'), edge);
  });
  // Express tells an error handler by its four parameters.
  app.use((error: unknown, req: express.Request, res: express.Response, next: express.NextFunction) => {
    if (res.headersSent) next(error);
    else void answerError(req, res, error, edge);
  });

  const ingest = createIngestHandler({ ...deps.ingest, edge });
  const otlp = createOtlpHandler(otlpDeps(deps));
  const compat = createCompatDispatcher(otlpDeps(deps), deps.protocols);
  const gateway = createGatewayHandler({ ...deps.gateway, edge });
  const analysts = createAnalystsHandler({ ...deps.analysts, edge });
  const mcp = createMcp({ ...deps.mcp, edge, routes, origins: deps.corsOrigins });
  const cors = createCors({
    origins: deps.corsOrigins,
    isOpen: (method, url) => ingestPathOf(url)?.format === 'app' || otlpPathOf(method, url) !== null,
  });
  const listener: RequestListener = (req, res) => {
    // Caches do not keep responses to a person; otherwise the browser would show them after the logout.
    if (isByCookie(req.headers) || hasOperatorCookie(req.headers)) res.setHeader('Cache-Control', 'no-store');
    if (cors(req, res)) {
      edge.observe('preflight', 'OPTIONS', res.statusCode, 0);
      return;
    }
    takeForeignCredential(req);
    const url = req.url ?? '';
    const path = ingestPathOf(url);
    const gatewayPath = path === null ? gatewayPathOf(url, req.headers) : null;
    const otlpPath = path === null ? otlpPathOf(req.method ?? '', url) : null;
    if (path !== null) ingest(req, res, path);
    else if (gatewayPath !== null) gateway(req, res, gatewayPath);
    else if (otlpPath !== null) otlp(req, res, otlpPath);
    else if (isForMcp(url)) mcp.serve(req, res);
    else if (isForAnalysts(req)) analysts(req, res);
    else if (!compat(req, res)) app(req, res);
  };
  return { listener, endStreams: () => mcp.close() };
}
