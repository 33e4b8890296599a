// What happens to an organization's own limits when its plan changes.
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { fromTo } from '../../../api/http/changes.ts';
import { changeOrg, type OrgsDeps } from '../../../api/control/orgs/orgs.ts';
import { type PatchOrgBody, patchOrgBody } from '../../../api/control/orgs/schema.ts';
import { activeMember, type OrgRecord } from '../../../schemas/records/org.ts';

const AT = '2026-03-04T05:06:07.000Z';
const LIMITS = { ingest_per_minute: 10, api_per_minute: 20, burst: 5 };

const anOrg = (over: Partial<OrgRecord> = {}): OrgRecord => ({
  org_id: 'org_a',
  name: 'A',
  plan_name: 'enterprise',
  overage_budget_usd: null,
  rate_limits: LIMITS,
  created_at: AT,
  updated_at: AT,
  members: [activeMember({ user_id: 'ann', email: 'ann@example.com' }, 'owner', AT)],
  transfer: null,
  ...over,
});

async function patched(org: OrgRecord, body: PatchOrgBody) {
  const orgs = {
    change: (_id: string, apply: (record: OrgRecord) => unknown) => Promise.resolve().then(() => apply(org)),
  };
  const deps = { orgs, now: () => Date.parse(AT) + 1000 } as unknown as OrgsDeps;
  const { before, after } = await changeOrg(deps, org.org_id, patchOrgBody.parse(body));
  return { after, changes: fromTo(before, after, ['plan_name', 'rate_limits', 'name']) };
}

describe("an org's own limits", () => {
  it.each(['free', 'starter', 'pro'] as const)(
    "an organization's own limits end when it leaves enterprise for %s, and the change is audited",
    async (plan_name) => {
      const { after, changes } = await patched(anOrg(), { plan_name });
      expect(after).toMatchObject({ plan_name, rate_limits: null });
      expect(changes).toEqual({
        plan_name: { from: 'enterprise', to: plan_name },
        rate_limits: { from: LIMITS, to: null },
      });
      expect((await patched(anOrg(), { plan_name, rate_limits: null })).changes).toEqual(changes);
    },
  );

  it("an organization's own limits stay with any other change", async () => {
    expect((await patched(anOrg(), { name: 'B' })).after).toMatchObject({ name: 'B', rate_limits: LIMITS });
    expect((await patched(anOrg(), { plan_name: 'enterprise' })).changes).toEqual({});
  });

  it("an organization's own limits are rejected with a plan that has none, given together or later", async () => {
    for (const [org, body] of [
      [anOrg(), { plan_name: 'pro', rate_limits: LIMITS }],
      [anOrg({ plan_name: 'pro', rate_limits: null }), { rate_limits: LIMITS }],
    ] as const) {
      const error: unknown = await patched(org, body).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ApiError);
      expect(error).toMatchObject({
        code: 'invalid_request',
        detail: expect.stringMatching(/^rate_limits: /) as string,
      });
    }
  });
});
