// Wires the paths that imitate Langfuse and LangSmith: their protocols on the intake, and their routes
// on the prompt registry, datasets and scores.
import { createPrompt, deletePrompt, findPrompt, labelsOfVersion, setLabels } from '../control/prompts/prompts.ts';
import type { Route } from '../http/route.ts';
import type { Protocol } from '../intake/compat/handler.ts';
import { partQueue } from '../intake/compat/part_queue.ts';
import { ingestionProtocol } from '../intake/langfuse/ingestion.ts';
import { langfuseRoutes } from '../intake/langfuse/routes.ts';
import { langsmithProtocols } from '../intake/langsmith/ingest.ts';
import { langsmithRoutes } from '../intake/langsmith/routes.ts';
import type { WiringParts } from './parts.ts';
import { pendingScoreQueue } from './pending_scores.ts';
import type { Stores } from './stores.ts';

/** Returns the protocols on which clients of Langfuse and LangSmith send telemetry. */
export function compatProtocols({ log }: Pick<WiringParts, 'log'>, partitions: number): Protocol[] {
  const queuePending = pendingScoreQueue(log);
  const queueParts = partQueue(log);
  return [
    ingestionProtocol({ partitions, queuePending, queueParts }),
    ...langsmithProtocols({ partitions, queuePending, queueParts }),
  ];
}

/** Returns the routes that clients of Langfuse and LangSmith call besides. */
export function compatRoutes({ log, now }: Pick<WiringParts, 'log' | 'now'>, stores: Stores): Route[] {
  const { orgs, prompts: store, datasets, evals } = stores;
  const queuePending = pendingScoreQueue(log);
  const promptsDeps = { store, runningEvals: (org_id: string) => evals.runningNow(org_id), now };
  return [
    ...langfuseRoutes({
      queuePending,
      now,
      orgName: (org_id) => orgs.get(org_id)?.name ?? org_id,
      datasets: (org_id) => datasets.list(org_id),
      datasetItems: (record, from, to) => datasets.items(record, from, to),
      findPrompt: findPrompt.bind(null, store),
      prompts: (org_id) => store.list(org_id),
      versions: (org_id, name) => store.versions(org_id, name),
      labelsOfVersion: labelsOfVersion.bind(null, store),
      tagsOf: (org_id, name) => store.labelsOf(org_id, name).tags,
      createPrompt: async (org_id, { name, template, config }) =>
        (await createPrompt(promptsDeps, org_id, { name, template, config })).record,
      setLabels: setLabels.bind(null, store),
      deletePrompt: (org_id, name) => deletePrompt(promptsDeps, org_id, name),
    }),
    ...langsmithRoutes({ queuePending, now }),
  ];
}
