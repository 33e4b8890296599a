import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { auditableChanges, CHANGES_BYTES_MAX } from '../../../ops/audit_changes.ts';

const read = (changes: Record<string, unknown>): unknown => JSON.parse(auditableChanges(changes));

describe('the changes of an audit record', () => {
  it('keep what changed, and lose every field that is a secret by its name, however deep it lies', () => {
    expect(
      read({
        name: 'ci',
        scopes: ['ingest:write'],
        key_prefix: 'sk_svc_ABCDE',
        raw_key: 'sk_svc_0123456789abcdef',
        token: 't',
        secret: 's',
        password: 'p',
        register_token: 'r',
        owner: { email: 'a@b.c', Webhook_Secret: 's', list: [{ token: 't', id: 1 }] },
        policy: { from: { max_prompt_tokens: 5, tokens: { used: 1 } }, to: null },
      }),
    ).toEqual({
      name: 'ci',
      scopes: ['ingest:write'],
      key_prefix: 'sk_svc_ABCDE',
      owner: { email: 'a@b.c', list: [{ id: 1 }] },
      policy: { from: { max_prompt_tokens: 5, tokens: { used: 1 } }, to: null },
    });
  });

  it('blank a secret of ours in a text under any name', () => {
    expect(read({ note: 'made sk_svc_0123456789abcdef and whsec_0123456789abcdef, rt_0123456789abcdef' })).toEqual({
      note: 'made sk_svc_*** and whsec_***, rt_***',
    });
  });

  it('are bounded in bytes: larger ones leave the names of their fields', () => {
    const whole = { text: 'x'.repeat(CHANGES_BYTES_MAX - JSON.stringify({ text: '' }).length) };
    expect(read(whole)).toEqual(whole);
    expect(read({ text: `${whole.text}x`, secret: 's', other: 1 })).toEqual({ truncated: true, fields: ['text', 'other'] });
    // Three bytes a character.
    expect(read({ text: '€'.repeat(CHANGES_BYTES_MAX / 2) })).toEqual({ truncated: true, fields: ['text'] });
  });

  it('never fail and never grow, whatever they hold', () => {
    const loop: Record<string, unknown> = { a: 1 };
    loop['self'] = loop;
    expect(read(loop)).toEqual({ truncated: true, fields: ['a', 'self'] });
    expect(read({ big: 12n })).toEqual({ big: '12' });
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${'f'.repeat(200)}${String(n)}`, 'x'.repeat(50)]));
    expect(Buffer.byteLength(auditableChanges(many))).toBeLessThanOrEqual(CHANGES_BYTES_MAX);
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true })), (changes) => {
        const text = auditableChanges(changes);
        expect(typeof JSON.parse(text)).toBe('object');
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(CHANGES_BYTES_MAX);
      }),
    );
  });
});
