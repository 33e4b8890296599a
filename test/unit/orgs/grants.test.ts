// When a grant may end.
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { createGrantBody, grantItem } from '../../../api/control/orgs/grant_schema.ts';
import { type GrantRecord, grantRecord } from '../../../schemas/records/grant.ts';
import { createGrant, type GrantsDeps } from '../../../api/control/orgs/grants.ts';
import { activeMember } from '../../../schemas/records/org.ts';

const NOW = Date.parse('2026-03-04T05:06:07.000Z');
const aBody = (expires_at: string) => ({
  user_id: 'vic',
  resource: { type: 'trace', id: 'trc_1' },
  permissions: ['traces:read'],
  expires_at,
});

async function granted(expires_at: string) {
  const stored: GrantRecord[] = [];
  const grants = {
    sweep: () => Promise.resolve(),
    list: () => [],
    create: (grant: GrantRecord) => Promise.resolve(stored.push(grant)),
  };
  const member = activeMember({ user_id: 'vic', email: 'vic@example.com' }, 'viewer', '2026-01-01T00:00:00.000Z');
  const deps = { grants, orgs: { memberOf: () => member }, exists: { trace: () => undefined }, now: () => NOW };
  const body = createGrantBody.parse(aBody(expires_at));
  const item = await createGrant(deps as unknown as GrantsDeps, 'org_a', body, AbortSignal.timeout(1000));
  return { item, stored };
}

describe('the end of a grant', () => {
  it.each([
    ['2026-03-04T05:06:07.001Z', '2026-03-04T05:06:07.001Z'],
    ['2027-03-06T05:06:08+01:00', '2027-03-06T04:06:08.000Z'],
    ['2199-01-01T00:00:00Z', '2199-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('the end of a grant may be %s, and is stored and shown as a time that can be read again', async (given, kept) => {
    const { item, stored } = await granted(given);
    expect([item.expires_at, stored.map(({ expires_at }) => expires_at)]).toEqual([kept, [kept]]);
    expect(grantItem.parse(item)).toEqual(item);
    expect(stored.map((record) => grantRecord.parse(JSON.parse(JSON.stringify(record))))).toEqual(stored);
  });

  it.each(['2026-03-04T05:06:07Z', '2020-01-01T00:00:00Z'])('is not %s, which is not in the future', async (given) => {
    const error: unknown = await granted(given).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'invalid_request', detail: 'expires_at: is not in the future' });
  });

  it.each(['tomorrow', '', '2027-02-30T00:00:00Z', '9999-12-31T23:59:59-01:00', '+012026-01-01T00:00:00Z'])(
    'the end of a grant may not be %j, which is not a time',
    (given) => {
      expect(createGrantBody.safeParse(aBody(given)).error?.issues.map(({ path }) => path)).toEqual([['expires_at']]);
    },
  );
});
