// The operator's page of settings.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SETTINGS_PAGE, settingsPage } from '../../../ops/tools/settings_page.ts';

it('the page of settings is what npm run settings writes', () => {
  const example = readFileSync(new URL('../../../ops/deploy/env.example', import.meta.url), 'utf8');
  expect(readFileSync(SETTINGS_PAGE, 'utf8')).toBe(settingsPage(example));
});
