// Which dead letters belong to an organization.
import { expect, test } from 'vitest';
import { isDeadLetterOf } from '../../../pipeline/org_deletion/queues.ts';
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

test('a letter of an event is its org’s, whatever its body says', () => {
  expect(isDeadLetterOf({ org_id: 'org_a', body: Buffer.from('{}') }, 'org_a')).toBe(true);
  expect(isDeadLetterOf({ org_id: 'org_b', body: Buffer.from(mailOf('org_a')) }, 'org_a')).toBe(false);
});

test.each(['org_a', `org_${'x'.repeat(80)}`, 'org.with.dots'])(
  'a dead letter of a queue belongs to the organization %s that its message names as a field',
  (org) => {
    expect(isDeadLetterOf({ org_id: '', body: Buffer.from(mailOf(org)) }, org)).toBe(true);
    expect(isDeadLetterOf({ org_id: '', body: Buffer.from(mailOf(`${org}2`)) }, org)).toBe(false);
    expect(isDeadLetterOf({ org_id: '', body: Buffer.from(mailOf(`other_${org}`)) }, org)).toBe(false);
  },
);
