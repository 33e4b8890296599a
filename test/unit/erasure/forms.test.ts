// The forms in which a value that names a person may be stored, and the stored forms that name
// nobody.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storedForms } from '../../../pipeline/domain/pii/erasure_values.ts';
import { PiiRedactor, type PiiRules } from '../../../pipeline/domain/pii/pii.ts';

const key = randomBytes(32);
const hashing: PiiRules = { kinds: ['email', 'phone'], custom: [], hash_key: key };

describe('the forms of a value', () => {
  it('a value has only its own form where nothing is redacted, or nothing is found in it', () => {
    expect(storedForms('user_id', 'ann@example.com', [])).toEqual(['ann@example.com']);
    expect(storedForms('user_id', 'u_17', [hashing])).toEqual(['u_17']);
  });

  it('a value has its hash as a second form where finds are hashed', () => {
    const stored = new PiiRedactor(hashing).begin().text('ann@example.com');
    expect(storedForms('user_id', 'ann@example.com', [hashing])).toEqual(['ann@example.com', stored]);
    expect(stored).toMatch(/^\[EMAIL:[0-9a-f]{12}\]$/);
  });

  it('a label that replaces every find is never a form', () => {
    expect(storedForms('user_id', 'ann@example.com', [{ ...hashing, hash_key: null }])).toEqual(['ann@example.com']);
    fc.assert(
      fc.property(fc.emailAddress(), (mail) => {
        expect(storedForms('user_id', mail, [{ ...hashing, hash_key: null }, hashing])).not.toContain('[EMAIL]');
      }),
    );
  });

  it("the forms depend on the attribute's name, as redaction does", () => {
    const named = new PiiRedactor(hashing).begin().fields({ phone: '5551234567' })['phone'];
    expect(storedForms('phone', '5551234567', [hashing])).toContain(named);
  });

  it('the forms include that of every policy that there may have been', () => {
    const other = { ...hashing, custom: [{ label: 'WHO', pattern: 'emp-[0-9]+' }] };
    const forms = storedForms('user_id', 'emp-17', [hashing, other]);
    expect(forms).toEqual(['emp-17', expect.stringMatching(/^\[WHO:[0-9a-f]{12}\]$/)]);
  });
});
