// Routes of the PII policy: get, update, and test on a text.
import { z } from 'zod';
import type { Redaction } from '../../../pipeline/domain/pii/pii.ts';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import { changedPiiPolicy, piiPolicy, piiPolicyChange } from '../../../schemas/records/pii_policy.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { checkPatterns } from './check.ts';
import type { PiiPolicyStore } from './store.ts';

const TAG = 'Privacy';
const FIELDS = piiPolicy.keyof().options;
const TEST_CHARS_MAX = 20_000;

const testBody = z.strictObject({
  text: z
    .string()
    .min(1, { error: 'must have at least one character' })
    .max(TEST_CHARS_MAX, { error: `must have at most ${TEST_CHARS_MAX} characters` }),
  policy: piiPolicyChange.optional().describe('Fields to try in place of the stored ones; null tries the default'),
});
const testAnswer = z
  .object({
    text: z.string().describe('The text with each find replaced by its label in brackets'),
    found: z
      .array(z.string())
      .describe(
        'Kinds and labels of the finds. `unsearched`: the patterns took too long on this text, which is replaced as a whole',
      ),
  })
  .meta({ id: 'PiiTest' });

export interface PrivacyDeps {
  policies: PiiPolicyStore;
  sealer: Sealer;
}

export function privacyRoutes(deps: PrivacyDeps): Route[] {
  return [getPiiPolicyRoute(deps), changePiiPolicyRoute(deps), testPiiPolicyRoute(deps)];
}

function getPiiPolicyRoute({ policies }: PrivacyDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/pii-policy',
    operation_id: 'getPiiPolicy',
    summary: 'Get the PII policy',
    description: 'Returns what the service redacts before it stores telemetry.',
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
    summary: 'Update the PII policy',
    description:
      'Changes the fields that are given; `null` resets a field to its default. The change takes effect within a second for events that arrive afterwards; stored data stays as it is.\n\nRedaction covers prompts, responses, names, tags, attributes, `user_id` and `session_id`, the scores of users and the reasons of LLM judges. It does not cover ids, models, `agent_id`, department, realm and numbers. Card numbers are checked by issuer and check digit, addresses by their syntax.\n\nA custom pattern must compile in a linear-time engine, to at most 500 instructions with its repetitions expanded, and 2,000 for all patterns together; otherwise the request fails with 422 naming `custom[i].pattern` and what is accepted. A text on which the patterns take too long is stored as [REDACTED] and reported in `pii.match` with the kind `unsearched`.',
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

function testPiiPolicyRoute({ policies }: PrivacyDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/pii-policy/test',
    operation_id: 'testPiiPolicy',
    summary: 'Test a PII policy on a text',
    description:
      'Returns the text as the policy would store it: the stored policy with the fields of `policy` in place of its own. The policy counts as enabled, and each find is replaced by its label in both modes. Nothing is stored.',
    tag: TAG,
    permission: 'pii:edit',
    audit: null,
    params: orgParams,
    body: testBody,
    example: { text: 'Write to ann@example.com about EMP-123456', policy: { kinds: ['email'] } },
    response: testAnswer,
    handler: async ({ org_id, body: { text, policy = {} } }) => {
      checkPatterns(policy, 'policy.');
      const redactor = policies.tester(org_id, changedPiiPolicy(policies.get(org_id), policy));
      return { data: await redactor.redact((redaction) => testedText(redaction, text)) };
    },
  });
}

/** Redacts a text as that of an event, and names the kinds that were found. */
function testedText(redaction: Redaction, text: string): z.infer<typeof testAnswer> {
  const redacted = redaction.textOrJson(text);
  return { text: redacted, found: redaction.takeKinds() };
}
