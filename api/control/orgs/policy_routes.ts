// Routes of the policy of an organization: its own settings for the processing of its telemetry.
// The field pii is the PII policy, which has its own record and routes.
import { parseFormula } from '../../../pipeline/domain/stats/formula.ts';
import {
  piiPolicy,
  type PiiPolicy,
  piiPolicyChange,
  type PiiPolicyChange,
} from '../../../schemas/records/pii_policy.ts';
import { policy, policyChange } from '../../../schemas/records/policy.ts';
import { ApiError } from '../../http/errors.ts';
import { may } from '../../http/credential.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { storeUnavailable } from './orgs.ts';
import type { PolicyStore } from './policy_store.ts';

const TAG = 'Organization';

const shownPolicy = policy
  .extend({
    pii: piiPolicy
      .optional()
      .describe(
        'The PII policy, which defines what is redacted before it is stored. Included only for callers who may edit it',
      ),
  })
  .meta({ id: 'Policy' });
const policyBody = policyChange.extend({ pii: piiPolicyChange.nullish() });
const PII_DEFAULTS: PiiPolicyChange = { enabled: null, kinds: null, custom: null, mode: null };

/** The PII policies, as the privacy slice provides them. */
export interface PiiPolicyView {
  of: (org_id: string) => PiiPolicy;
  /**
   * @param at prefix of the field in the error, such as `pii.` @throws ApiError invalid_request
   * naming the field
   */
  check: (change: PiiPolicyChange, at: string) => void;
  /** @throws ApiError upstream_unavailable */
  change: (org_id: string, change: PiiPolicyChange) => Promise<{ before: PiiPolicy; after: PiiPolicy }>;
}

export function policyRoutes(policies: PolicyStore, pii: PiiPolicyView): Route[] {
  return [getPolicyRoute(policies, pii), changePolicyRoute(policies, pii)];
}

function getPolicyRoute(policies: PolicyStore, pii: PiiPolicyView): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/policy',
    operation_id: 'getPolicy',
    summary: 'Get the policy',
    description:
      'Returns the settings of the organization. The field `pii` is included only for callers with the permission `pii:edit`.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    response: shownPolicy,
    handler: ({ org_id, credential }) => ({
      data: { ...policies.get(org_id), ...(may(credential, 'pii:edit') ? { pii: pii.of(org_id) } : {}) },
    }),
  });
}

function changePolicyRoute(policies: PolicyStore, pii: PiiPolicyView): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/policy',
    operation_id: 'changePolicy',
    summary: 'Update the policy',
    description:
      'Changes the fields that are given; `null` resets a field to its default. The change takes effect within a second. If the request fails with 502, part of the change may be stored: repeat the request.',
    tag: TAG,
    permission: 'settings:edit',
    audit: { action: 'policy.update', target: 'policy', param: 'org_id' },
    params: orgParams,
    body: policyBody,
    example: { max_prompt_tokens: 8000, value_of_outcomes: 'tickets * 12.5 + leads * 40' },
    response: shownPolicy,
    handler: async ({ org_id, body: { pii: given, ...body }, audit }) => {
      const piiChange = given === null ? PII_DEFAULTS : given;
      if (piiChange !== undefined) pii.check(piiChange, 'pii.');
      const formula = typeof body.value_of_outcomes === 'string' ? parseFormula(body.value_of_outcomes) : null;
      if (formula?.ok === false) throw new ApiError('invalid_request', `value_of_outcomes: ${formula.message}`);
      const changed = await policies.change(org_id, body).catch((error: unknown) => {
        throw storeUnavailable(error);
      });
      // The policy is two records. If the second cannot be written, the request fails with 502, and
      // repeating it completes the change.
      const redacted = piiChange === undefined ? null : await pii.change(org_id, piiChange);
      const before = { ...changed.before, pii: redacted?.before ?? pii.of(org_id) };
      const after = { ...changed.after, pii: redacted?.after ?? before.pii };
      audit.changes(fromTo(before, after, shownPolicy.keyof().options));
      return { data: after };
    },
  });
}
