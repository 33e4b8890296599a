// The actions on an incident: resolve it, and compare its newest trace with the last success of the
// same agent and root span.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization, useSession } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import { comparePath, lastSuccess } from '../compare/candidates.ts';
import lists from '../sessions/sessions.module.css';
import { auditLink } from '../audit/audit_link.ts';
import { type IncidentDetail, incidentQuery, resolvedWords } from './incident_data.ts';

/** The buttons. */
export function IncidentActions({ incident }: { incident: IncidentDetail }): ReactElement {
  const { can } = useOrganization();
  const resolve = useResolve(incident);
  const compare = useCompare(incident);
  const mayResolve = can('incidents:resolve') && incident.status === 'open';
  const newest = incident.trace_ids[0];
  const run = (): void => {
    if (!resolve.isPending) resolve.mutate();
  };
  useKeys('Incident', [
    ...(mayResolve ? [{ keys: 'r', label: 'Resolve the incident', run }] : []),
    ...(newest === undefined
      ? []
      : [{ keys: 'c', label: 'Compare the newest trace with the last success', run: compare }]),
  ]);
  return (
    <>
      {resolve.error !== null && <ErrorPanel error={resolve.error} what="the resolution" onRetry={run} />}
      <div className={lists.actions}>
        {mayResolve && (
          <Button look="primary" icon="check" keys="r" busy={resolve.isPending} onClick={run}>
            Resolve incident
          </Button>
        )}
        {newest !== undefined && (
          <Button icon="compare" keys="c" onClick={compare}>
            Compare with a success
          </Button>
        )}
      </div>
    </>
  );
}

function useResolve({ incident_id }: IncidentDetail) {
  const { org_id, can } = useOrganization();
  const session = useSession();
  const cache = useQueryClient();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: () =>
      send(org_id, 'post', '/v1/incidents/{incident_id}/resolve', {
        params: { path: { incident_id } },
        idempotencyKey,
      }),
    onSuccess: ({ data }) => {
      cache.setQueryData(incidentQuery(org_id, incident_id).queryKey, (before) =>
        before === undefined ? undefined : { ...before, data },
      );
      void cache.invalidateQueries({ queryKey: [org_id, '/v1/incidents'] });
      const own = data.resolved_by === session.data?.user_id;
      toast({
        text: own ? 'The incident is resolved.' : `The incident was already resolved ${resolvedWords(data)}.`,
        ...(own && can('audit:view') ? { link: auditLink(org_id, 'incident.resolve') } : {}),
      });
    },
  });
}

function useCompare(incident: IncidentDetail): () => void {
  const { org_id } = useOrganization();
  const { trace_ids, agent_id, root_span_name, last_trace_at } = incident;
  return () => {
    const [trace_id] = trace_ids;
    if (trace_id === undefined) return;
    lastSuccess(org_id, { trace_id, agent_id, root_span_name, started_at: last_trace_at }).then(
      (found) => {
        if (found === null) toast({ text: 'No trace of this agent and root span succeeded.' });
        else navigate(comparePath(org_id, found, trace_id));
      },
      (error: unknown) => {
        toast({ tone: 'error', text: error instanceof RequestError ? error.detail : String(error) });
      },
    );
  };
}
