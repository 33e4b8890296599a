// The scopes of the form for API keys, and the times of a rotation.
import { describe, expect, it } from 'vitest';
import {
  newKeyEnds,
  oldKeyEnds,
  presetOf,
  PRESETS,
  scopeGroups,
  scopeWords,
} from '../../../api/portal/web/screens/settings/key_scopes.ts';
import { patternError } from '../../../api/portal/web/screens/settings/pii_draft.ts';
import {
  before,
  policyOf,
  draftOf,
  runsAround,
  stagesOf,
} from '../../../api/portal/web/screens/settings/retention_draft.ts';
import { type Permission, PERMISSIONS, ROLES, roleMay } from '../../../api/http/permissions.ts';
import { SCOPES } from '../../../schemas/records/api_key.ts';

const items = (Object.keys(PERMISSIONS) as Permission[]).map((permission) => ({
  permission,
  description: `Does ${permission}`,
  roles: ROLES.filter((role) => roleMay(role, permission)),
  scope: PERMISSIONS[permission].scope,
  grantable_on: [],
}));
const NOW = Date.parse('2026-11-24T00:00:00Z');

describe('the scopes of a key', () => {
  it('are all in a group of the form for an owner, each with what it lets a key do', () => {
    const shown = scopeGroups(items, () => true).flatMap(({ scopes }) => scopes);
    expect(shown.map(({ scope }) => scope).toSorted()).toEqual(SCOPES.filter((scope) => scope !== '*').toSorted());
    expect(shown.find(({ scope }) => scope === 'judges:write')?.words).toBe('Does judges:run. Does judges:write');
  });

  it('are offered only where the person holds every permission that the scope gives', () => {
    const can = (permission: string): boolean => roleMay('member', permission as Permission);
    const shown = scopeGroups(items, can).flatMap(({ scopes }) => scopes.map(({ scope }) => scope));
    expect(shown).toContain('traces:read');
    expect(shown).not.toContain('judges:write');
    expect(shown).not.toContain('org:write');
  });

  it('of a preset are known by its name, and others by their own', () => {
    for (const { scopes, label } of PRESETS) expect(scopeWords([...scopes].toReversed())).toBe(label);
    expect(presetOf(new Set(['traces:read']))).toBeUndefined();
    expect(scopeWords(['traces:read', 'org:read'])).toBe('traces:read, org:read');
    expect(scopeWords(['*'])).toBe('All scopes');
  });
});

describe('a rotation', () => {
  it('ends the old key after the overlap, and never later than it would have expired', () => {
    expect(oldKeyEnds(null, 7, NOW)).toBe('2026-12-01T00:00:00.000Z');
    expect(oldKeyEnds('2026-11-25T00:00:00.000Z', 7, NOW)).toBe('2026-11-25T00:00:00.000Z');
    expect(oldKeyEnds('2027-11-25T00:00:00.000Z', 7, NOW)).toBe('2026-12-01T00:00:00.000Z');
  });

  it('gives the new key the life that the old one had', () => {
    expect(newKeyEnds('2026-01-01T00:00:00.000Z', null, NOW)).toBeNull();
    expect(newKeyEnds('2026-01-01T00:00:00.000Z', '2026-01-31T00:00:00.000Z', NOW)).toBe('2026-12-24T00:00:00.000Z');
  });
});

describe('a refused pattern', () => {
  it('is found at its field in the words of the API', () => {
    expect(patternError('policy.custom[2].pattern: missing )')).toEqual({
      index: 2,
      field: 'pattern',
      words: 'Missing )',
    });
    expect(patternError('custom.0.label: must be 1 to 32 letters')).toMatchObject({ index: 0, field: 'label' });
    expect(patternError('text: must have at least one character')).toBeNull();
    expect(patternError(null)).toBeNull();
  });
});

describe('retention', () => {
  const policy = {
    telemetry_events: { full_prompt_response_days: 30, metadata_only_days: 365, delete_after_days: null },
    judge_scores: { delete_after_days: null },
    usage_events: { delete_after_days: 2555 },
    audit_log: { delete_after_days: 2555 },
  };
  const shorter = { ...policy.telemetry_events, full_prompt_response_days: 14 };

  it('stays as it is when nothing is typed, and takes whole days only', () => {
    expect(policyOf(draftOf(policy))).toEqual(policy);
    expect(policyOf({ ...draftOf(policy), full: '' })).toEqual({ wrong: 'full' });
    expect(policyOf({ ...draftOf(policy), telemetry: '0' })).toEqual({ wrong: 'telemetry' });
    expect(policyOf({ ...draftOf(policy), audit: 'soon' })).toEqual({ wrong: 'audit' });
    expect(policyOf({ ...draftOf(policy), usage: '' })).toMatchObject({ usage_events: { delete_after_days: null } });
  });

  it('has a stage for each change of what is kept, without empty ones', () => {
    expect(stagesOf(policy).map(({ kept, from, until }) => [kept, from, until])).toEqual([
      ['texts', 0, 30],
      ['attributes', 30, 365],
      ['numbers', 365, null],
    ]);
    const short = { full_prompt_response_days: 7, metadata_only_days: 7, delete_after_days: 7 };
    expect(stagesOf({ ...policy, telemetry_events: short }).map(({ kept }) => kept)).toEqual(['texts', 'nothing']);
  });

  it('takes effect at the next 03:30 UTC', () => {
    const at = (time: string): string => new Date(runsAround(Date.parse(time)).next).toISOString();
    expect(at('2026-11-24T03:29:59Z')).toBe('2026-11-24T03:30:00.000Z');
    expect(at('2026-11-24T03:30:00Z')).toBe('2026-11-25T03:30:00.000Z');
  });

  it('is taken back to the policy of the last run, however often it was changed since', () => {
    const changes = [
      { changes: { telemetry_events: { from: { ...shorter, metadata_only_days: 90 }, to: shorter } } },
      { changes: { telemetry_events: { from: policy.telemetry_events, to: shorter } } },
    ];
    expect(before(changes, { ...policy, telemetry_events: shorter })).toEqual({
      telemetry_events: policy.telemetry_events,
    });
    expect(before(changes, policy)).toBeNull();
    expect(before([], policy)).toBeNull();
  });
});
