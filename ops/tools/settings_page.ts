// Generates ops/docs/operate/settings.md from ops/deploy/env.example, which a unit test compares
// with ops/platform/env.ts: `npm run settings`. A unit test fails when the page is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const EXAMPLE = path.join(ROOT, 'ops/deploy/env.example');
export const SETTINGS_PAGE = path.join(ROOT, 'ops/docs/operate/settings.md');

const escaped = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

/**
 * Returns the page for the text of env.example: one row for each variable, with the comment above
 * it.
 */
export function settingsPage(example: string): string {
  const rows: string[] = [];
  let comment: string[] = [];
  for (const line of example.split('\n').slice(2)) {
    if (line.startsWith('#')) comment.push(line.slice(1).trim());
    const at = line.indexOf('=');
    if (line === '') comment = [];
    if (line.startsWith('#') || at < 0) continue;
    const value = line.slice(at + 1);
    rows.push(
      `| \`${line.slice(0, at)}\` | ${value === '' ? 'unset' : `\`${escaped(value)}\``} | ${escaped(comment.join(' '))} |`,
    );
    comment = [];
  }
  return `# Settings

Settings are environment variables. All are optional. They are checked at the start: a value that is not accepted stops it with one
line that names the variable, what it got and what it accepts.

<!-- prettier-ignore-start -->

| Variable | Default | Meaning |
|---|---|---|
${rows.join('\n')}

<!-- prettier-ignore-end -->
`;
}

if (import.meta.main) writeFileSync(SETTINGS_PAGE, settingsPage(readFileSync(EXAMPLE, 'utf8')));
