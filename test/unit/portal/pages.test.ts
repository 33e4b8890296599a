// The addresses of the portal's pages.
import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { isPortalPath, PORTAL_PAGES, portalPageOf } from '../../../api/portal/pages.ts';

describe('portalPageOf', () => {
  it.each([
    ['/', '/'],
    ['/login', '/login'],
    ['/login/', '/login'],
    ['/o/org_local', '/o/:org_id'],
    ['/o/org_local/', '/o/:org_id'],
    ['/o/org_local/traces', '/o/:org_id/traces'],
    ['/o/a%2Fb/traces/trc_1', '/o/:org_id/traces/:trace_id'],
    ['/o/x/compare/trc_1/trc_2', '/o/:org_id/compare/:a/:b'],
    ['/operator/jobs', '/operator/:section'],
  ])('finds the page at %s', (path, page) => {
    expect(portalPageOf(path)?.path).toBe(page);
  });

  it.each(['/o', '/o/', '/o//traces', '/o/x/nowhere', '/o/x/traces/a/b', '/docs', '/v1/traces', '//', '/logins'])(
    'finds no page at %j',
    (path) => {
      expect(portalPageOf(path)).toBeNull();
    },
  );
});

test('addresses of the API are not addresses of the portal', () => {
  for (const path of [
    '/v1/traces',
    '/orgs/x',
    '/admin/orgs',
    '/docs',
    '/healthz',
    '/openapi.json',
    '/portal/assets/a.js',
  ])
    expect([path, isPortalPath(path)]).toEqual([path, false]);
  for (const { path } of PORTAL_PAGES) expect([path, isPortalPath(path)]).toEqual([path, true]);
  expect(isPortalPath('/o/x/nowhere')).toBe(true);
});

test('every page of the browser code is in the list, with the file of its screen', () => {
  const source = readFileSync(new URL('../../../api/portal/web/shell/routes.tsx', import.meta.url), 'utf8');
  const declared = [
    ...source.matchAll(/page\(\s*(ORG|'[^']+'|`[^`]+`),[\s\S]*?import\('\.\.\/screens\/([^']+)\.tsx'\)/g),
  ].map(([, path = '', screen]) => [path.replaceAll(/['`]/g, '').replace(/^(ORG|\$\{ORG\})/, '/o/:org_id'), screen]);
  expect(declared.length).toBeGreaterThan(5);
  for (const [path = '', screen] of declared)
    expect([path, portalPageOf(path.replaceAll(':', ''))?.screen]).toEqual([path, screen]);
});
