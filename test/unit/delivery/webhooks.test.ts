// Rules of deliveries: the catalog, the signature as a receiver verifies it, the waits between
// attempts.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Sealer, SealBroken } from '../../../ops/platform/sealing.ts';
import { backoffMs, nextTryAt, RETRY, retryAfterMs, verdictOf } from '../../../pipeline/domain/webhooks/retry.ts';
import { SIGNATURE_AGE_MAX_SECONDS, signatureOf } from '../../../pipeline/domain/webhooks/signature.ts';
import { EVENT_CATALOG, eventNamed, testPayload } from '../../../schemas/events/catalog.ts';

/** Steps 1 to 4 of the contract, as a receiver implements them. */
function verifies(header: string, body: Buffer, secret: string, nowSeconds: number): boolean {
  const parts = header.split(',').map((part) => part.split('=') as [string, string]);
  const t = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (Math.abs(nowSeconds - Number(t)) > SIGNATURE_AGE_MAX_SECONDS) return false;
  const mine = Buffer.from(
    createHmac('sha256', secret)
      .update(Buffer.concat([Buffer.from(`${t}.`), body]))
      .digest('hex'),
  );
  return parts.some(
    ([name, value]) => name === 'v1' && value.length === mine.length && timingSafeEqual(Buffer.from(value), mine),
  );
}

describe('signatures', () => {
  const body = Buffer.from('{"event":"trace.completed","note":"ü"}');
  const at = 1_760_000_000_123;
  const header = signatureOf(['whsec_one'], body, at);

  it('a signature has the form t=<unix>,v1=<hex>', () => {
    expect(header).toMatch(/^t=1760000000,v1=[0-9a-f]{64}$/);
  });

  it('a signature verifies with the secret and the raw body, and with nothing else', () => {
    const now = Math.floor(at / 1000);
    expect(verifies(header, body, 'whsec_one', now)).toBe(true);
    expect(verifies(header, body, 'whsec_two', now)).toBe(false);
    expect(verifies(header, Buffer.concat([body, Buffer.from(' ')]), 'whsec_one', now)).toBe(false);
    expect(verifies(header, body, 'whsec_one', now + 300)).toBe(true);
    expect(verifies(header, body, 'whsec_one', now + 301)).toBe(false);
    expect(verifies(header, body, 'whsec_one', now - 301)).toBe(false);
  });

  it('a signature has one v1 for each valid secret during a rotation, the newest first', () => {
    const both = signatureOf(['whsec_new', 'whsec_one'], body, at);
    expect(both).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    expect(both.split(',')[2]).toBe(header.split(',')[1]);
    for (const secret of ['whsec_new', 'whsec_one'])
      expect(verifies(both, body, secret, Math.floor(at / 1000))).toBe(true);
  });
});

describe('what becomes of a try', () => {
  it.each([
    ['delivered', [200, 201, 202, 204, 299]],
    [
      'failed',
      [300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 422, 407, 428, 430, 499, 101, 600, 999],
    ],
    ['retry', [null, 408, 429, 500, 501, 502, 503, 504, 599]],
  ] as const)('the status after an attempt is %s: %j', (verdict, statuses) => {
    for (const status of statuses) expect([status, verdictOf(status)]).toEqual([status, verdict]);
  });
});

describe('the waits between tries', () => {
  const least = () => 0;
  const most = () => 0.999_999;

  it('the waits between attempts grow from 1 s to 60 s, and never beyond', () => {
    const floors = Array.from({ length: 12 }, (_, attempt) => backoffMs(attempt, RETRY, least));
    expect(floors).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000]);
    const ceilings = Array.from({ length: 12 }, (_, attempt) => backoffMs(attempt, RETRY, most));
    expect(ceilings.slice(0, 6)).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000]);
    expect(Math.max(...ceilings, backoffMs(1_000_000, RETRY, most))).toBe(60_000);
  });

  const failed = { attempt: 0, first_attempt_at: 1_000_000, status: 500, retry_after: undefined };

  it('attempts end 24 hours after the first one', () => {
    const day = 86_400_000;
    expect(nextTryAt(failed, 1_000_000, RETRY, least)).toBe(1_001_000);
    expect(nextTryAt({ ...failed, attempt: 1440 }, 1_000_000 + day - 30_000, RETRY, least)).toBe(1_000_000 + day);
    expect(nextTryAt({ ...failed, attempt: 1440 }, 1_000_000 + day - 29_999, RETRY, least)).toBeNull();
  });

  it('a wait lasts as long as a receiver asks, up to an hour', () => {
    const now = 1_000_000;
    expect(nextTryAt({ ...failed, status: 429, retry_after: '7' }, now, RETRY, least)).toBe(now + 7000);
    expect(nextTryAt({ ...failed, status: 503, retry_after: '7' }, now, RETRY, least)).toBe(now + 7000);
    expect(nextTryAt({ ...failed, status: 500, retry_after: '7' }, now, RETRY, least)).toBe(now + 1000);
    expect(nextTryAt({ ...failed, status: 429, retry_after: '0' }, now, RETRY, least)).toBe(now + 1000);
    expect(nextTryAt({ ...failed, status: 429, retry_after: '999999' }, now, RETRY, least)).toBe(now + 3_600_000);
  });

  it('Retry-After is read as seconds or as a date, and nothing else', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(retryAfterMs(429, 'Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30_000);
    expect(retryAfterMs(429, 'Wed, 31 Dec 2025 00:00:00 GMT', now)).toBe(0);
    for (const text of ['soon', '-1', '1e9', '', '1.5', '2026']) {
      const read = retryAfterMs(429, text, now);
      expect([text, read]).toEqual([text, text === '2026' ? 2_026_000 : null]);
    }
  });
});

describe('the catalog', () => {
  const NAMES = [
    'trace.started',
    'trace.completed',
    'judge.threshold_breach',
    'judge.regression',
    'cost.threshold_breach',
    'budget.threshold_breach',
    'cost.anomaly',
    'cost.forecast_breach',
    'budget.hard_exceeded',
    'incident.created',
    'incident.resolved',
    'agent.registered',
    'agent.deprecated',
    'pii.match',
    'prompt.created',
    'prompt.labeled',
    'monitor.alerting',
    'monitor.resolved',
    'audit.api_key.create',
    'audit.api_key.revoke',
    'audit.member.invite',
    'audit.member.remove',
  ];

  it('the catalog names every event of the contract and no other', () => {
    expect(Object.keys(EVENT_CATALOG).toSorted()).toEqual(NAMES.toSorted());
    for (const name of NAMES) expect(eventNamed(name)).toBe(name);
  });

  it('the catalog accepts cost_anomaly as cost.anomaly, and nothing that only resembles a name', () => {
    expect(eventNamed('cost_anomaly')).toBe('cost.anomaly');
    for (const name of ['trace.complete', 'TRACE.STARTED', '*', '', 'toString', '__proto__', 'webhook.test'])
      expect(eventNamed(name)).toBeNull();
  });

  it('each payload of the catalog names its event', () => {
    for (const [name, { payload, fires }] of Object.entries({
      ...EVENT_CATALOG,
      'webhook.test': { payload: testPayload, fires: 'asked' },
    })) {
      const { properties, required } = z.toJSONSchema(payload);
      expect(fires).not.toBe('');
      expect(properties?.['event']).toMatchObject({ const: name });
      expect(required).toContain('event');
    }
  });

  it.each([
    [
      'trace.completed',
      ['event', 'trace_id', 'outcome', 'duration_ms', 'input_tokens', 'output_tokens', 'cost_usd', 'judge_scores'],
    ],
    ['trace.started', ['event', 'trace_id', 'agent_id', 'started_at', 'org_id']],
    ['judge.regression', ['event', 'judge_id', 'previous_mean', 'current_mean', 'drop', 'threshold']],
    ['cost.threshold_breach', ['event', 'resource', 'percent', 'used', 'soft_limit', 'hard_limit', 'severity']],
    ['cost.anomaly', ['event', 'z', 'expected_usd', 'actual_usd', 'attributed_to']],
    ['incident.created', ['event', 'incident_id', 'cluster_id', 'severity', 'trace_count', 'first_trace_at']],
  ] as const)('%s has the fields of the contract', (name, fields) => {
    expect(Object.keys(EVENT_CATALOG[name].payload.shape)).toEqual(fields);
  });
});

describe('sealed secrets', () => {
  const sealer = new Sealer(Buffer.alloc(32, 7));
  const sealed = sealer.seal('whsec_one', 'webhook\norg_a\nwh_1');

  it('sealed secrets open with the same key for the same owner only', () => {
    expect(sealed).not.toContain('whsec');
    expect(sealer.open(sealed, 'webhook\norg_a\nwh_1')).toBe('whsec_one');
    expect(() => sealer.open(sealed, 'webhook\norg_b\nwh_1')).toThrow(SealBroken);
    expect(() => new Sealer(Buffer.alloc(32, 8)).open(sealed, 'webhook\norg_a\nwh_1')).toThrow(SealBroken);
    expect(() => sealer.open(`${sealed.slice(0, -2)}AA`, 'webhook\norg_a\nwh_1')).toThrow(SealBroken);
    for (const broken of ['', 'v1.', 'v2.abc', 'whsec_one'])
      expect(() => sealer.open(broken, 'webhook\norg_a\nwh_1')).toThrow(SealBroken);
  });

  it('sealed secrets are never the same twice', () => {
    expect(sealer.seal('whsec_one', 'webhook\norg_a\nwh_1')).not.toBe(sealed);
  });
});
