// Serves the guides, the pages for operators, runbooks and architecture decisions as HTML, so that
// users of a running service can read them without a clone. The pages are the Markdown files of
// ops/, rendered on the first request and kept in memory, and the pictures that they show. Only files in
// those folders are served: a name is looked up and never joined to a path.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Marked, type Tokens } from 'marked';
import { DOCS_CSS } from './docs_style.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/**
 * Sections in the order of the navigation. The guides have the order of the table in README; other
 * pages are sorted by name.
 */
const SECTIONS = [
  {
    section: 'guides',
    title: 'Guides',
    folder: 'ops/docs/guides',
    first: [
      'sending',
      'opentelemetry',
      'coding-agents',
      'langfuse',
      'langsmith',
      'typescript-sdk',
      'python',
      'command-line',
      'mcp',
      'gateway',
      'reading',
      'people-and-keys',
      'agents',
      'budgets',
      'judges-and-evals',
      'prompts',
    ],
  },
  { section: 'operate', title: 'Operate', folder: 'ops/docs/operate', first: ['running', 'settings'] },
  { section: 'measured', title: 'Benchmarks', folder: 'ops/docs', first: [] },
  { section: 'internals', title: 'Internals', folder: 'ops/docs/internals', first: ['architecture', 'glossary'] },
  { section: 'deploy', title: 'Deployments', folder: 'ops/deploy', first: ['README'] },
  { section: 'runbooks', title: 'Runbooks', folder: 'ops/runbooks', first: ['README'] },
  { section: 'adr', title: 'Decisions', folder: 'ops/adr', first: [] },
] as const;

/** A page of the documentation. */
interface DocPage {
  /** Address, such as /docs/guides/sending. */
  url: string;
  /** Path of the file from the root of the repository. */
  file: string;
  title: string;
}

/** The documentation of one checkout. */
export interface DocPages {
  /** Every page, by section and name (`guides/sending`). */
  pages: ReadonlyMap<string, DocPage>;
  /** Returns a page as an HTML document; null for a page that does not exist. */
  html: (section: string, name: string) => string | null;
  /** Returns a picture of the pages as PNG, by the name of its file; null for one that does not exist. */
  picture: (name: string) => Buffer | null;
  /** Links to all pages as HTML, for the navigation of the reference. */
  nav: string;
}

/** Folder of the pictures; pages refer to them by their relative path. */
const PICTURES = 'ops/docs/pictures';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const titleOf = (markdown: string, fallback: string): string =>
  /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '') ?? fallback;

/** Returns the id that GitHub gives a heading: lower case, words joined by hyphens. */
const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** Finds the pages below a root. It reads titles only; texts are rendered on demand. */
export function openDocPages(root: string = ROOT): DocPages {
  const pages = new Map<string, DocPage>();
  for (const { section, folder, first } of SECTIONS) {
    const directory = path.join(root, folder);
    if (!existsSync(directory)) continue;
    const names = readdirSync(directory)
      .filter((file) => file.endsWith('.md'))
      .map((file) => file.slice(0, -'.md'.length));
    const rank = (name: string): number => {
      const at = first.findIndex((known) => known === name);
      return at < 0 ? first.length : at;
    };
    for (const name of names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))) {
      const file = `${folder}/${name}.md`;
      const title = titleOf(readFileSync(path.join(root, file), 'utf8'), name);
      pages.set(`${section}/${name}`, { url: `/docs/${section}/${name}`, file, title });
    }
  }
  const pictureFolder = path.join(root, PICTURES);
  const pictures = new Set(
    existsSync(pictureFolder) ? readdirSync(pictureFolder).filter((file) => file.endsWith('.png')) : [],
  );
  const rendered = new Map<string, string>();
  return {
    pages,
    nav: navOf(pages, null),
    picture: (name) => (pictures.has(name) ? readFileSync(path.join(pictureFolder, name)) : null),
    html: (section, name) => {
      const key = `${section}/${name}`;
      const page = pages.get(key);
      if (page === undefined) return null;
      let html = rendered.get(key);
      if (html === undefined) rendered.set(key, (html = documentOf(page, pages, root)));
      return html;
    },
  };
}

/**
 * Returns the sections as collapsible lists of links. The section of the current page is open, or
 * the guides where there is none.
 */
function navOf(pages: ReadonlyMap<string, DocPage>, current: DocPage | null): string {
  return SECTIONS.map(({ section, title }) => {
    const own = [...pages].filter(([key]) => key.startsWith(`${section}/`)).map(([, page]) => page);
    if (own.length === 0) return '';
    const links = own.map(({ url, title: text }) => {
      const mark = url === current?.url ? ' aria-current="page"' : '';
      return `<a href="${url}"${mark}>${escaped(text)}</a>`;
    });
    const isOpen = current === null ? section === 'guides' : own.some(({ url }) => url === current.url);
    return `<details${isOpen ? ' open' : ''}><summary>${title}</summary>${links.join('')}</details>`;
  }).join('');
}

function documentOf(page: DocPage, pages: ReadonlyMap<string, DocPage>, root: string): string {
  const body = render(readFileSync(path.join(root, page.file), 'utf8'), page, pages);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(page.title)} · Millrace</title><style>${DOCS_CSS}</style></head>
<body><nav id="contents"><p class="brand">Millrace</p><p class="version"><a href="/docs">API reference</a></p>${navOf(pages, page)}</nav><main><a class="contents" href="#contents">Contents</a>${body}</main></body></html>
`;
}

/** Renders Markdown. Links between pages lead to their addresses; links to other files of the repository become plain text. */
function render(markdown: string, page: DocPage, pages: ReadonlyMap<string, DocPage>): string {
  const byFile = new Map([...pages.values()].map(({ file, url }) => [file, url]));
  const hrefOf = (href: string): string | null => {
    if (/^(https?:|#|\/)/.test(href)) return href;
    const [target = '', hash] = href.split('#');
    const url = byFile.get(path.posix.join(path.posix.dirname(page.file), target));
    if (url === undefined) return null;
    return hash === undefined ? url : `${url}#${hash}`;
  };
  const marked = new Marked({
    renderer: {
      // HTML comments tell the tests which blocks not to run; nothing else in these files is HTML.
      html: () => '',
      heading({ tokens, depth, text }: Tokens.Heading): string {
        return `<h${depth} id="${slugOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link): string {
        const text = this.parser.parseInline(tokens);
        const target = hrefOf(href);
        return target === null ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image({ href, text }: Tokens.Image): string {
        const file = path.posix.join(path.posix.dirname(page.file), href);
        if (path.posix.dirname(file) !== PICTURES) return escaped(text);
        const url = `/docs/pictures/${encodeURIComponent(path.posix.basename(file))}`;
        return `<img src="${url}" alt="${escaped(text)}" loading="lazy">`;
      },
      table(token: Tokens.Table): string {
        const cells = (tag: 'th' | 'td', row: readonly Tokens.TableCell[]): string =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`;
        const rows = token.rows.map((row) => cells('td', row)).join('');
        return `<div class="wide"><table><thead>${cells('th', token.header)}</thead><tbody>${rows}</tbody></table></div>\n`;
      },
    },
  });
  return marked.parse(markdown, { async: false });
}
