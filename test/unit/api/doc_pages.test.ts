// The documentation as the service serves it, and its links.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDocPages } from '../../../api/openapi/doc_pages.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const docs = openDocPages();

/** Returns the project's Markdown files that a reader may open. */
function markdownFiles(): string[] {
  const below = readdirSync(path.join(ROOT, 'ops'), { recursive: true, encoding: 'utf8' }).map((file) =>
    path.join('ops', file),
  );
  const above = readdirSync(ROOT, { encoding: 'utf8' });
  return [...above, ...below].filter((file) => file.endsWith('.md'));
}

describe('openDocPages', () => {
  it('openDocPages renders every page with its title, the navigation and no HTML comment', () => {
    for (const [key, { title }] of docs.pages) {
      const [section = '', name = ''] = key.split('/');
      const html = docs.html(section, name) ?? '';
      expect(html).toContain('<main>');
      expect(html).toContain('href="/docs/guides/sending"');
      expect(html).not.toContain('<!-- not run');
      expect(html.includes(title.slice(0, 8).replaceAll('&', '&amp;'))).toBe(true);
    }
  });

  it('openDocPages turns links between pages into addresses of the service', () => {
    expect(docs.html('guides', 'gateway')).toContain('href="/docs/adr/0025-gateway"');
  });

  it('openDocPages shows the pictures of a guide from an address of the service, and gives no other file', () => {
    const shown = [...(docs.html('guides', 'portal') ?? '').matchAll(/<img src="([^"]+)" alt="[^"]+"/g)];
    expect(shown.length).toBeGreaterThan(5);
    for (const [, src = ''] of shown) {
      expect(src).toMatch(/^\/docs\/pictures\/[a-z_]+\.png$/);
      const picture = docs.picture(src.slice('/docs/pictures/'.length));
      expect(picture?.subarray(1, 4).toString()).toBe('PNG');
      // Small enough for a page that is read over a slow line.
      expect(picture?.length).toBeLessThan(150_000);
    }
    for (const name of ['nothing.png', '../guides/portal.md', '..', '']) expect(docs.picture(name)).toBeNull();
  });

  it('openDocPages returns null for names that are not pages, paths out of the folder included', () => {
    for (const name of ['nothing', '../../../package', '..', '', 'sending.md'])
      expect(docs.html('guides', name)).toBeNull();
    expect(docs.html('__proto__', 'constructor')).toBeNull();
  });
});

it.each(markdownFiles())('links of %s lead to files that exist', (file) => {
  const text = readFileSync(path.join(ROOT, file), 'utf8').replace(/```[\s\S]*?```/g, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target.split('#')[0] ?? '');
  const missing = targets.filter(
    (target) =>
      target !== '' &&
      !/^(https?:|mailto:|\/)/.test(target) &&
      !existsSync(path.join(ROOT, path.dirname(file), target)),
  );
  expect(missing).toEqual([]);
});
