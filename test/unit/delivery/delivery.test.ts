import { describe, expect, it } from 'vitest';
import { auditRow } from '../../../pipeline/delivery/audit_lander.ts';
import { retryDelayMs } from '../../../pipeline/queues/backoff.ts';
import { auditEntryCodec, type AuditEntry, UnknownSchemaError } from '../../../schemas/codec.ts';

describe('the wait before the next try', () => {
  const bounds = { firstMs: 100, maxMs: 5000 };
  it('the wait before the next attempt doubles up to its bound, and half of it is random', () => {
    expect([1, 2, 3, 6, 7, 8, 1000].map((failures) => retryDelayMs(failures, bounds, () => 1))).toEqual([
      100, 200, 400, 3200, 5000, 5000, 5000,
    ]);
    expect([1, 2, 1000].map((failures) => retryDelayMs(failures, bounds, () => 0))).toEqual([50, 100, 2500]);
  });
});

const entry: AuditEntry = {
  audit_id: 'aud_1',
  phase: 'intent',
  org_id: 'org_a',
  actor_type: 'api_key',
  actor_id: 'ak_1',
  action: 'api_key.create',
  target_type: 'api_key',
  target_id: '',
  changes: '{}',
  request_id: 'req_1',
  ip: '127.0.0.1',
  created_at: Date.parse('2026-03-01T10:20:30.456Z'),
};

describe('a row of the audit log', () => {
  it('an audit row has the time of the intent in every phase, and its outcome supersedes it', () => {
    const rows = (['intent', 'done', 'failed'] as const).map((phase) => auditRow({ ...entry, phase }));
    expect(rows.map(({ created_at, outcome, version }) => [created_at, outcome, version])).toEqual([
      ['2026-03-01 10:20:30.456', 'unknown', 1],
      ['2026-03-01 10:20:30.456', 'done', 2],
      ['2026-03-01 10:20:30.456', 'failed', 2],
    ]);
  });

  it('an audit row is due after seven years', () => {
    expect(auditRow(entry)['delete_on']).toBe('2033-02-27');
  });
});

describe('the message of an audit entry', () => {
  it('the message of an audit entry is decoded as it was encoded, and rejected under another schema', () => {
    const bytes = auditEntryCodec.encode(entry);
    expect({ ...auditEntryCodec.decode(bytes, auditEntryCodec.fingerprint) }).toEqual(entry);
    expect(() => auditEntryCodec.decode(bytes, 'another')).toThrow(UnknownSchemaError);
  });
});
