// One whole service with a built portal, the data of `npm run demo` and a person who is logged in:
// for the browser tests, the pictures and the benchmark of the portal.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { startService, type TestService } from '../../support/service_process.ts';
import { eventually } from '../../support/wait.ts';

export interface PortalService {
  /** Address of the service without a slash at the end. */
  url: string;
  org_id: string;
  api_key: string;
  admin_token: string;
  data_dir: string;
  /** Name and value of the session cookie of the local person. */
  cookie: { name: string; value: string };
}

const ROOT = path.resolve(import.meta.dirname, '../../..');
const TICKET = /\/login#([A-Za-z0-9_-]+)/;
const BUILD_MS_MAX = 120_000;

/**
 * Starts the service. The caller ends with stopServices.
 * @param modelUrl base URL of the provider of models; unset: the service has none
 */
export async function startPortalService(modelUrl?: string): Promise<PortalService> {
  const model = modelUrl === undefined ? {} : { SERVICE_LLM_BASE_URL: modelUrl };
  const service = await startService({ env: { SERVICE_OPEN: 'false', ...model } });
  await portalBuilt(service.baseUrl);
  return {
    url: service.baseUrl,
    org_id: service.orgId,
    api_key: service.secrets.api_key,
    admin_token: service.secrets.admin_token,
    data_dir: service.dataDir,
    cookie: await logIn(service),
  };
}

/** Sends the runs of `npm run demo`. */
export async function sendDemo({ url, org_id, api_key }: PortalService): Promise<void> {
  const demo = path.join(ROOT, 'ops/demo/demo.ts');
  await promisify(execFile)(process.execPath, [demo, '--url', url, '--org', org_id, '--key', api_key]);
}

/** Resolves when a service serves a built portal. */
export async function portalBuilt(url: string): Promise<void> {
  await eventually(
    async () => {
      const page = await fetch(`${url}/login`, { headers: { accept: 'text/html' } });
      return (await page.text()).includes('<script');
    },
    { withinMs: BUILD_MS_MAX, what: 'a built portal' },
  );
}

/** Exchanges the ticket that the service printed for a session, as the login page does. */
async function logIn(service: TestService): Promise<PortalService['cookie']> {
  return exchangeTicket(service.baseUrl, ticketOf(service.stdout()));
}

/** Returns the ticket of the login link in a text. @throws Error with the text when it has none */
export function ticketOf(text: string): string {
  const ticket = TICKET.exec(text)?.[1];
  if (ticket === undefined) throw new Error(`there is no login link in:\n${text}`);
  return ticket;
}

/** Exchanges a ticket for the cookie of a session, as the login page does. */
export async function exchangeTicket(url: string, ticket: string): Promise<PortalService['cookie']> {
  const answer = await fetch(`${url}/v1/session/ticket`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, 'sec-fetch-site': 'same-origin' },
    body: JSON.stringify({ ticket }),
  });
  const [cookie = ''] = answer.headers.getSetCookie();
  const [name = '', value = ''] = (cookie.split(';')[0] ?? '').split('=', 2);
  if (value === '') throw new Error(`the ticket was refused: ${answer.status} ${await answer.text()}`);
  return { name, value };
}
