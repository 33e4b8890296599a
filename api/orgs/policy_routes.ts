// Routes of an org's policy: its own settings of how its telemetry is treated.
import { parseFormula } from '../../pipeline/domain/formula.ts';
import { policy, policyChange } from '../../schemas/records/policy.ts';
import { ApiError } from '../http/errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { fromTo } from './changes.ts';
import { storeAway } from './orgs.ts';
import type { PolicyStore } from './policy_store.ts';
import { orgParams } from './schema.ts';

export function policyRoutes(policies: PolicyStore): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/policy',
      operation_id: 'getPolicy',
      summary: 'The policy of the org',
      tag: 'Organization',
      permission: 'org:read',
      params: orgParams,
      response: policy,
      handler: ({ org_id }) => ({ data: policies.get(org_id) }),
    }),
    defineRoute({
      method: 'put',
      path: '/orgs/:org_id/policy',
      operation_id: 'changePolicy',
      summary: 'Change the policy of the org',
      description: 'Takes the fields to change; null sets a field to its default again. It takes effect within a second.',
      tag: 'Organization',
      permission: 'settings:edit',
      params: orgParams,
      body: policyChange,
      example: { max_prompt_tokens: 8000, value_of_outcomes: 'tickets * 12.5 + leads * 40' },
      response: policy,
      audit: { action: 'policy.update', target: 'policy', param: 'org_id' },
      handler: async ({ org_id, body, audit }) => {
        const formula = typeof body.value_of_outcomes === 'string' ? parseFormula(body.value_of_outcomes) : null;
        if (formula?.ok === false) throw new ApiError('invalid_request', `value_of_outcomes: ${formula.message}`);
        const { before, after } = await policies.change(org_id, body).catch((error: unknown) => {
          throw storeAway(error);
        });
        const changes = fromTo(before, after, policy.keyof().options);
        if (Object.keys(changes).length === 0) audit.nothing();
        else audit.changes(changes);
        return { data: after };
      },
    }),
  ];
}
