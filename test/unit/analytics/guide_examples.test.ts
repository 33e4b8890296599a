// The analytics queries of the reading guide are queries that the API accepts.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { checkedQuery } from '../../../sql/analytics/check.ts';
import { analyticsQuery } from '../../../api/telemetry/analytics/schema.ts';

const guide = readFileSync(new URL('../../../ops/docs/guides/reading.md', import.meta.url), 'utf8');
const section = guide.slice(guide.indexOf('## Analytics'));
const bodies = [...section.matchAll(/analytics\/query [^{]*'(\{[^']*\})'/g)].map(([, body]) => body ?? '');

it('the first example reads hours, the second reads rows', () => {
  const sources = bodies.map(
    (body) => checkedQuery('org_a', analyticsQuery.parse(JSON.parse(body)), Date.parse('2026-02-01')).source,
  );
  expect(sources).toEqual(['rollup', 'rows']);
});
