// Which dead letters belong to an organization.
import { expect, test } from 'vitest';
import { isLetterOf } from '../../../pipeline/org_deletion/queues.ts';
import { mailCodec } from '../../../schemas/codec.ts';

const mailOf = (org_id: string): Uint8Array =>
  mailCodec.encode({
    mail_id: 'm',
    org_id,
    to: 'a@example.com',
    subject: `to ${org_id}x`,
    text: 't',
    secret: '',
    created_at: 0,
  });

test('a dead letter of an event belongs to its organization, whatever its body says', () => {
  expect(isLetterOf({ org_id: 'org_a', body: Buffer.from('{}') }, 'org_a')).toBe(true);
  expect(isLetterOf({ org_id: 'org_b', body: Buffer.from(mailOf('org_a')) }, 'org_a')).toBe(false);
});

test.each(['org_a', `org_${'x'.repeat(80)}`, 'org.with.dots'])(
  'a dead letter of a queue belongs to the organization %s that its message names as a field',
  (org) => {
    expect(isLetterOf({ org_id: '', body: Buffer.from(mailOf(org)) }, org)).toBe(true);
    expect(isLetterOf({ org_id: '', body: Buffer.from(mailOf(`${org}2`)) }, org)).toBe(false);
    expect(isLetterOf({ org_id: '', body: Buffer.from(mailOf(`other_${org}`)) }, org)).toBe(false);
  },
);
