// Routes of an org's PII policy: what is replaced in its telemetry before it is stored.
import type { Sealer } from '../../../ops/platform/sealing.ts';
import { piiPolicy, piiPolicyChange } from '../../../schemas/records/pii_policy.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { checkPatterns } from './check.ts';
import type { PiiPolicyStore } from './store.ts';

const TAG = 'Privacy';
const FIELDS = piiPolicy.keyof().options;

export interface PrivacyDeps {
  policies: PiiPolicyStore;
  sealer: Sealer;
}

export function privacyRoutes(deps: PrivacyDeps): Route[] {
  return [getPiiPolicyRoute(deps), changePiiPolicyRoute(deps)];
}

function getPiiPolicyRoute({ policies }: PrivacyDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/pii-policy',
    operation_id: 'getPiiPolicy',
    summary: 'What is redacted before it is stored',
    tag: TAG,
    permission: 'pii:edit',
    params: orgParams,
    response: piiPolicy,
    handler: ({ org_id }) => ({ data: policies.get(org_id) }),
  });
}

function changePiiPolicyRoute({ policies, sealer }: PrivacyDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/pii-policy',
    operation_id: 'changePiiPolicy',
    summary: 'Change what is redacted before it is stored',
    description:
      'Takes the fields to change; null sets a field to its default again. It holds within a second, for events that come after it; what is stored stays as it is. Prompts, responses, names, tags, attributes, user_id and session_id are redacted, scores of users and reasons of LLM judges too; ids, models, agent_id, department, realm and what is counted are not. Cards are checked by issuer and check digit, addresses by their rules. A pattern that the linear-time engine refuses, or that is too large once its repetitions are written out (500 instructions, 2000 for all patterns), is 422 naming custom[i].pattern and what would pass. A text that the patterns take too long on is stored as [REDACTED], kind unsearched in pii.match.',
    tag: TAG,
    permission: 'pii:edit',
    audit: { action: 'pii_policy.update', target: 'pii_policy', param: 'org_id' },
    params: orgParams,
    body: piiPolicyChange,
    example: {
      enabled: true,
      kinds: ['email', 'card'],
      custom: [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }],
      mode: 'redact',
    },
    response: piiPolicy,
    handler: async ({ org_id, body, audit }) => {
      checkPatterns(body);
      const { before, after } = await policies.change(org_id, body, sealer);
      audit.changes(fromTo(before, after, FIELDS));
      return { data: after };
    },
  });
}
