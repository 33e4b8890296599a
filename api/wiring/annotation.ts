// Wires annotation queues: their routes, and the sweep that sends scores which a process left.
import { queueScore } from '../../ops/exchange/score_queue.ts';
import { Outbox } from '../control/annotation/outbox.ts';
import { annotationRoutes } from '../control/annotation/routes.ts';
import type { Route } from '../http/route.ts';
import type { DocumentSearch } from '../telemetry/spans/postings/document_search.ts';
import type { ListDeps } from '../telemetry/traces/list.ts';
import { tracesById, tracesOfQuery } from '../telemetry/traces/listed.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export function openAnnotation(
  { log, clickhouse, now, onProblem }: WiringParts,
  { annotations }: Stores,
  documents: DocumentSearch,
): { routes: Route[]; close: () => void } {
  const outbox = new Outbox({
    annotations,
    queueScore: (score) => queueScore(log, score),
    clock: () => performance.now(),
    onProblem,
  });
  outbox.start();
  const lists: ListDeps = { clickhouse, findByWords: (query, signal) => documents.traces(query, signal), now };
  return {
    routes: annotationRoutes({
      annotations,
      outbox,
      clickhouse,
      tracesOf: (...asked) => tracesOfQuery(lists, ...asked),
      tracesBy: (...asked) => tracesById(lists, ...asked),
      now,
    }),
    close: () => {
      outbox.close();
    },
  };
}
