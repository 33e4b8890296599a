import fc from 'fast-check';
import { expect, it } from 'vitest';
import { basicCredentialsPattern } from '../../../ops/launch/clickhouse/http_rules.ts';

const basic = (user: string, password: string): string => Buffer.from(`${user}:${password}`).toString('base64');
const userName = fc.stringMatching(/^[a-z_]{1,20}$/);

it('the rule matches the credentials of a user with any password', () => {
  fc.assert(
    fc.property(userName, fc.string({ unit: 'binary', maxLength: 40 }), (user, password) => {
      expect(basic(user, password)).toMatch(new RegExp(`^(${basicCredentialsPattern(user)})$`));
    }),
  );
});

it('the rule matches no credentials of another user, whatever the password', () => {
  fc.assert(
    fc.property(userName, userName, fc.string({ unit: 'binary', maxLength: 40 }), (user, other, password) => {
      fc.pre(user !== other);
      expect(basic(other, password)).not.toMatch(new RegExp(`^(${basicCredentialsPattern(user)})$`));
    }),
  );
});

it.each(['', 'default:', 'app', ':app:', 'APP:x', ' app:x', 'app x:'])(
  'the rule does not match %j as the credentials of app',
  (text) => {
    expect(Buffer.from(text).toString('base64')).not.toMatch(new RegExp(`^(${basicCredentialsPattern('app')})$`));
  },
);
