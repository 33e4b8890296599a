// The text that a start prints.
import { describe, expect, it } from 'vitest';
import { type BannerFacts, banner } from '../../../ops/launch/banner.ts';

const facts: BannerFacts = {
  baseUrl: 'http://127.0.0.1:8080',
  portal: 'http://127.0.0.1:8080/login#a-ticket',
  orgId: 'org_local',
  apiKey: 'sk_svc_0123456789abcdef',
  apiKeyGiven: false,
  adminToken: 'the-admin-token',
  analystPassword: 'the-analyst-password',
  clickhouse: 'http://127.0.0.1:8123',
  secretsFile: 'data/secrets.json',
  first: true,
  seconds: 1.23,
};

describe('banner', () => {
  it('the banner shows secrets and two lines to try on the first start', () => {
    const text = banner(facts);
    expect(text).toContain('sk_svc_0123456789abcdef');
    expect(text).toContain('the-admin-token');
    expect(text).toContain('the-analyst-password');
    expect(text.match(/^ {2}curl .*/gm)).toHaveLength(2);
  });

  it('the banner shows no secret later, but where they are', () => {
    const text = banner({ ...facts, first: false });
    for (const secret of [facts.apiKey, facts.adminToken, facts.analystPassword]) expect(text).not.toContain(secret);
    expect(text).toContain('sk_svc_01234…');
    expect(text).toContain('data/secrets.json');
    expect(text).not.toContain('curl');
  });

  it('the banner never shows a secret given to production, and lets the shell fill in the key', () => {
    const text = banner({ ...facts, apiKey: null, apiKeyGiven: true, adminToken: null, analystPassword: null });
    expect(text).toContain('as given by SERVICE_ADMIN_TOKEN');
    expect(text).toMatch(/API key +as given by SERVICE_BOOTSTRAP_API_KEY$/m);
    expect(text).toContain('-H "X-Org-Api-Key: $SERVICE_BOOTSTRAP_API_KEY"');
    expect(text).toContain('-H "Authorization: Bearer $SERVICE_BOOTSTRAP_API_KEY"');
  });

  it('the banner prints lines that work as they are with a given key, on the first start only', () => {
    const given = { ...facts, apiKeyGiven: true };
    const text = banner(given);
    expect(text).toMatch(/API key +sk_svc_0123456789abcdef {3}\(as given by SERVICE_BOOTSTRAP_API_KEY\)$/m);
    expect(text).toContain('-H "X-Org-Api-Key: sk_svc_0123456789abcdef"');
    expect(text).toContain('-H "Authorization: Bearer sk_svc_0123456789abcdef"');
    expect(text).not.toContain('$');
    const later = banner({ ...given, first: false });
    expect(later).toMatch(/API key +as given by SERVICE_BOOTSTRAP_API_KEY$/m);
    expect(later).not.toContain('sk_svc_');
  });

  it('the banner does not mention analysts where ClickHouse is external', () => {
    expect(banner({ ...facts, clickhouse: null })).not.toContain('analyst');
  });

  it('the banner names the portal first, and not at all where none is served', () => {
    const text = banner(facts);
    expect(text).toMatch(/^ {2}portal +http:\/\/127\.0\.0\.1:8080\/login#a-ticket$/m);
    expect(text.indexOf('portal')).toBeLessThan(text.indexOf('address'));
    expect(banner({ ...facts, portal: null })).not.toContain('portal');
  });
});
