// Serves the portal: its page at the addresses of api/portal/pages.ts, to browsers alone, and its files under /portal/.
// Everything else falls through, so that a program gets the same answers as without a portal.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { preferredCoding } from '../http/accept_encoding.ts';
import { addVary, sendText } from '../http/compress.ts';
import { PortalFiles, pageOf } from './assets.ts';
import { FILE_HEADERS, PAGE_HEADERS, PORTAL_PAGE_HEADERS } from './headers.ts';
import { waitingPage } from './html.ts';
import { isPortalPath, portalPageOf } from './pages.ts';

const FILES = '/portal/assets/';
/** Seconds after which a page of a portal that is being built may be asked for again. */
const RETRY_S = '1';

export interface Portal {
  /**
   * Answers a request for a page or a file of the portal.
   * @param path path of the URL, without query
   * @param wantsPage true if the client prefers HTML to JSON
   * @returns the name of what was answered, for the metrics; null for any other request, which is left alone
   * @throws Error when the files cannot be read
   */
  answer(req: IncomingMessage, res: ServerResponse, path: string, wantsPage: boolean): Promise<string | null>;
}

/**
 * Opens the portal.
 * @param folder the built files, which may appear later
 */
export function openPortal(folder: string): Portal {
  const files = new PortalFiles(folder);
  return {
    answer: async (req, res, path, wantsPage) => {
      if (req.method !== 'GET' && req.method !== 'HEAD') return null;
      if (path.startsWith(FILES))
        return (await sendFile(files, req, res, path.slice(FILES.length))) ? 'portal file' : null;
      if (!wantsPage || !isPortalPath(path)) return null;
      await sendPage(files, res, path);
      return 'portal page';
    },
  };
}

async function sendPage(files: PortalFiles, res: ServerResponse, path: string): Promise<void> {
  const build = await files.build();
  addVary(res, 'Accept');
  if (build === null || 'failed' in build) {
    const { html, policy } = waitingPage(build === null ? null : build.failed);
    const headers = { ...PAGE_HEADERS, 'Content-Security-Policy': policy };
    await sendText(res, 503, html, build === null ? { ...headers, 'Retry-After': RETRY_S } : headers);
    return;
  }
  const page = portalPageOf(path);
  await sendText(res, page === null ? 404 : 200, pageOf(build, page), PORTAL_PAGE_HEADERS);
}

async function sendFile(files: PortalFiles, req: IncomingMessage, res: ServerResponse, name: string): Promise<boolean> {
  const file = await files.file(name);
  if (file === null) return false;
  const accepted = req.headers['accept-encoding'];
  const coding = preferredCoding(typeof accepted === 'string' ? accepted : undefined, file.codings);
  const body = await file.read(coding);
  if (res.headersSent || res.destroyed) return true;
  if (file.codings.length > 0) addVary(res, 'Accept-Encoding');
  res.writeHead(200, {
    ...FILE_HEADERS,
    'Content-Type': file.type,
    'Content-Length': body.byteLength,
    ...(coding === null ? {} : { 'Content-Encoding': coding }),
  });
  res.end(body);
  return true;
}
