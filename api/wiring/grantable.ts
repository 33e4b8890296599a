// What a grant can be for, across slices: how each type of thing is looked up in its org.
import type { ClickHouse } from '../../sql/client.ts';
import type { Resource } from '../http/auth.ts';
import { ApiError, type ErrorCode } from '../http/errors.ts';
import type { Exists } from '../orgs/grants.ts';
import { locateTrace } from '../traces/locate.ts';

export interface GrantableDeps {
  clickhouse: ClickHouse;
  agents: { exists: (org_id: string, agent_id: string) => boolean };
}

export function grantable({ clickhouse, agents }: GrantableDeps): Record<Resource['type'], Exists> {
  return {
    trace: async (org_id, trace_id, signal) => {
      await locateTrace(clickhouse, org_id, trace_id, signal);
    },
    agent: (org_id, agent_id) => {
      if (!agents.exists(org_id, agent_id)) throw missing('agent_not_found', 'agent');
    },
    // No org has any of these yet.
    judge: () => {
      throw missing('judge_not_found', 'judge');
    },
    dataset: () => {
      throw missing('dataset_not_found', 'dataset');
    },
  };
}

function missing(code: ErrorCode, what: string): ApiError {
  return new ApiError(code, `resource.id: the org has no ${what} of this id`);
}
