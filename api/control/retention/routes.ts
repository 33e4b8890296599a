// Routes of retention and cold storage: the retention policy, and the restore of texts.
import { dateOf } from '../../../pipeline/domain/time/days.ts';
import { jobView, type LongJob, type JobView, RESTORE } from '../../../schemas/records/job_record.ts';
import { retentionChange, retentionPolicy } from '../../../schemas/records/retention.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { restoreArgsOf, restoreBody } from './schema.ts';
import type { RetentionStore } from './store.ts';

const TAG = 'Retention';

export interface RetentionDeps {
  policies: RetentionStore;
  /**
   * Creates a long job. @throws ApiError conflict when the organization has too many open jobs,
   * upstream_unavailable
   */
  ask: (job: Pick<LongJob, 'org_id' | 'kind' | 'args'>) => Promise<JobView>;
}

export function retentionRoutes(deps: RetentionDeps): Route[] {
  return [getRetentionRoute(deps), changeRetentionRoute(deps), restoreColdStorageRoute(deps)];
}

function getRetentionRoute({ policies }: RetentionDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/retention',
    operation_id: 'getRetention',
    summary: 'Get the retention policy',
    description: 'Returns for how many days each kind of data is kept.',
    tag: TAG,
    permission: 'retention:read',
    params: orgParams,
    response: retentionPolicy,
    handler: ({ org_id }) => ({ data: policies.get(org_id) }),
  });
}

function changeRetentionRoute({ policies }: RetentionDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/retention',
    operation_id: 'changeRetention',
    summary: 'Update the retention policy',
    description:
      'Changes the fields that are given. `null` means never for `delete_after_days`, and the default for the other fields. `delete_after_days` must be at least `metadata_only_days`, which must be at least `full_prompt_response_days`; otherwise the request fails with 422.\n\nThe change takes effect at the next nightly run, 03:30 UTC; until then nothing is deleted and the change can be undone. Days count from the day, UTC, on which a span began.',
    tag: TAG,
    permission: 'retention:override',
    audit: { action: 'retention.update', target: 'retention', param: 'org_id' },
    params: orgParams,
    body: retentionChange,
    example: { telemetry_events: { full_prompt_response_days: 14, metadata_only_days: 180, delete_after_days: 730 } },
    response: retentionPolicy,
    errors: ['upstream_unavailable'],
    handler: async ({ org_id, body, audit }) => {
      const { before, after } = await policies.change(org_id, body);
      audit.changes(fromTo(before, after, retentionPolicy.keyof().options));
      return { data: after };
    },
  });
}

function restoreColdStorageRoute({ ask }: RetentionDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/cold-storage/restore',
    operation_id: 'restoreColdStorage',
    summary: 'Restore texts from cold storage',
    description:
      'Restores prompts and responses of the days from `since` to `until`, of the given traces, or of the given traces within these days. A worker does this: poll `GET /v1/jobs/{id}`. Restored texts can be read and searched as before, for as long as the organization keeps full texts, counted from the restore. Restoring texts again is harmless.',
    tag: TAG,
    permission: 'retention:override',
    audit: { action: 'cold_storage.restore', target: 'job' },
    params: orgParams,
    body: restoreBody,
    example: { since: '2026-05-01', until: '2026-05-07', trace_ids: ['trc_0123456789abcdef'] },
    status: 202,
    response: jobView,
    errors: ['conflict', 'upstream_unavailable'],
    handler: async ({ org_id, body, audit }) => {
      const args = restoreArgsOf(body);
      const job = await ask({ org_id, kind: RESTORE, args });
      audit.target(job.job_id);
      const { since_day, until_day, trace_ids } = args;
      const date = (day: number | null): string | null => (day === null ? null : dateOf(day));
      audit.changes({ since: date(since_day), until: date(until_day), traces: trace_ids?.length ?? null });
      return { data: job };
    },
  });
}
