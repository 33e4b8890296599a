// The HTML documents of the portal: the page that loads it, and the page that waits for its build.
import { inlinePagePolicy } from '../../ops/platform/security_headers.ts';

/** Addresses of the files. */
const FILES = '/portal/';
/** Maximum size of the page: it names as many modules for an early fetch as fit. */
const PAGE_BYTES_MAX = 2000;
/** Icon of the page. The waiting page has none: its policy allows no image. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path fill='%232f6fde' d='M1 2h9v3H1zm3 4.5h8v3H4zM7 11h8v3H7z'/></svg>";
const HEAD = `<!doctype html>
<html lang=en><head><meta charset=utf-8><title>Millrace</title><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">`;

/** Returns the page that loads the portal. Names are files of the build, which need no escapes. */
export function portalHtml(files: {
  early: string;
  entry: string;
  styles: string | null;
  font: string | null;
  modules: readonly string[];
}): string {
  const styles = files.styles === null ? '' : `<link rel=stylesheet href="${FILES}${files.styles}">`;
  const font =
    files.font === null ? '' : `<link rel=preload as=font type=font/woff2 crossorigin href=${FILES}${files.font}>`;
  const page = (modules: string): string =>
    `${HEAD}<link rel=icon href="${ICON}"><script type="module" async src="${FILES}${files.early}"></script><script type="module" src="${FILES}${files.entry}"></script>${styles}${font}${modules}</head><body><div id="root"></div><noscript>The portal needs JavaScript; the <a href="/docs">API reference</a> does not.</noscript></body></html>
`;
  let modules = '';
  for (const file of files.modules) {
    const more = `${modules}<link rel=modulepreload href=${FILES}${file}>`;
    if (page(more).length > PAGE_BYTES_MAX) break;
    modules = more;
  }
  return page(modules);
}

const WAIT_STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;margin:20vh auto;max-width:40rem;padding:0 1rem}pre{white-space:pre-wrap;overflow-wrap:anywhere}';
/** Loads the address again, with its fragment: it may hold the ticket of a login link. */
const WAIT_SCRIPT = 'setTimeout(()=>location.reload(),1000)';
const FAILED_SCRIPT = '';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** A page with its Content-Security-Policy. */
export interface WaitingPage {
  html: string;
  policy: string;
}

/**
 * Returns the page of a portal whose files are not there yet. It loads itself again each second; with the reason of a
 * failed build it shows that instead.
 */
export function waitingPage(failed: string | null): WaitingPage {
  const script = failed === null ? WAIT_SCRIPT : FAILED_SCRIPT;
  const body =
    failed === null
      ? '<p role="status">The portal is being built. This page loads it in a few seconds.</p>'
      : `<h1>The portal could not be built</h1><p>The API works without it; see the <a href="/docs">documentation</a>.</p><pre>${escaped(failed)}</pre>`;
  return {
    html: `${HEAD}<style>${WAIT_STYLE}</style></head><body>${body}<script>${script}</script></body></html>\n`,
    policy: inlinePagePolicy(WAIT_STYLE, script),
  };
}
