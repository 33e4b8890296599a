import { expect, test } from 'vitest';
import { API_VERSION } from '../../../api/http/envelope.ts';
import { checkPinnedVersion } from '../../../api/http/version.ts';

test('the version of this release', () => {
  expect(API_VERSION).toBe('1.7.0');
});

test.each([undefined, '1.7', '1.7.0', '1.7.x', '1.7.3', '1.0', ' 1.6.x '])('%s can be pinned', (pinned) => {
  expect(() => {
    checkPinnedVersion(pinned);
  }).not.toThrow();
});

test.each([
  '',
  '1',
  '1.8',
  '2.0',
  '0.9',
  'v1.7',
  '1.7.0.0',
  '1.7.x.1',
  '1.x',
  '-1.7',
  '1.7-beta',
  '1.7, 1.7',
  '1.9999999',
  '١.٧',
  '1.7\n'.repeat(2),
])('"%s" cannot be pinned', (pinned) => {
  expect(() => {
    checkPinnedVersion(pinned);
  }).toThrow(expect.objectContaining({ code: 'unsupported_api_version' }) as Error);
});
