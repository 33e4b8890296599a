// Looks up the resources that a grant can name, by type: each slice answers whether an organization
// has the resource.
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Resource } from '../http/auth.ts';
import { ApiError, type ErrorCode } from '../http/errors.ts';
import type { Exists } from '../control/orgs/grants.ts';
import { locateTrace } from '../telemetry/traces/locate.ts';

export interface GrantableDeps {
  clickhouse: ClickHouse;
  agents: { exists: (org_id: string, agent_id: string) => boolean };
  judges: { get: (org_id: string, judge_id: string) => unknown };
  datasets: { get: (org_id: string, dataset_id: string) => unknown };
}

export function grantable({ clickhouse, agents, judges, datasets }: GrantableDeps): Record<Resource['type'], Exists> {
  return {
    trace: async (org_id, trace_id, signal) => {
      await locateTrace(clickhouse, org_id, trace_id, signal);
    },
    agent: (org_id, agent_id) => {
      if (!agents.exists(org_id, agent_id)) throw missing('agent_not_found', 'agent');
    },
    judge: (org_id, judge_id) => {
      if (judges.get(org_id, judge_id) === null) throw missing('judge_not_found', 'judge');
    },
    dataset: (org_id, dataset_id) => {
      if (datasets.get(org_id, dataset_id) === null) throw missing('dataset_not_found', 'dataset');
    },
  };
}

function missing(code: ErrorCode, what: string): ApiError {
  return new ApiError(code, `resource.id: the organization has no ${what} with this id`);
}
