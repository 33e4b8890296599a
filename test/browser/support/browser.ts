// A page of the portal in a headless Chromium. Every page records what must never happen on any
// screen: errors on the console, violations of the content security policy, and requests to another
// origin. `faultsOf` returns them, and each test expects none.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import { confirmed } from '../../support/wait.ts';
import { launchChromium } from './chromium.ts';
import { aPerson, type Cookie } from './person.ts';
import type { PortalService } from './portal_service.ts';
import { watchRequests } from './settled.ts';

const WIDE = { width: 1440, height: 900 };
/** Bound on one action or expectation of a page; a slow machine needs far less. */
const ACTION_MS_MAX = 60_000;
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

let browser: Browser | null = null;
let person: Cookie | null = null;
const contexts = new Set<BrowserContext>();
const faults = new WeakMap<Page, string[]>();

beforeAll(async () => {
  person = await aPerson(inject('portal'));
  browser = await launchChromium(inject('chromium'));
});

afterEach(async () => {
  for (const context of contexts) await context.close();
  contexts.clear();
});

afterAll(async () => {
  await browser?.close();
});

export { settled } from './settled.ts';

export interface PageOptions {
  /** Path and query within the portal, or within the organization if it begins with `~/`. */
  at?: string;
  /** Default: the person of the test file is logged in. */
  loggedIn?: boolean;
  /** Another person than that of the test file. */
  as?: Cookie;
  /** Another service than that of all test files, with its local person. */
  portal?: PortalService;
  context?: BrowserContextOptions;
}

/** Returns a path of the organization of the tests. */
export const orgPath = (path: string): string => `/o/${inject('portal').org_id}${path}`;

/** Opens a page in a browser profile of its own. */
export async function openPage(options: PageOptions = {}): Promise<Page> {
  if (browser === null || person === null) throw new Error('the browser is not running');
  const { at = '/', loggedIn = true, context = {}, portal = inject('portal') } = options;
  const { url, org_id } = portal;
  const cookie = options.as ?? (options.portal === undefined ? person : options.portal.cookie);
  const profile = await browser.newContext({
    baseURL: url,
    viewport: WIDE,
    locale: 'en-GB',
    timezoneId: 'UTC',
    ...context,
  });
  contexts.add(profile);
  profile.setDefaultTimeout(ACTION_MS_MAX);
  if (loggedIn) await profile.addCookies([{ ...cookie, url, httpOnly: true, sameSite: 'Strict' }]);
  const page = await profile.newPage();
  record(page, new URL(url).origin);
  await page.goto(at.startsWith('~/') ? `/o/${org_id}${at.slice(1)}` : at);
  return page;
}

function record(page: Page, origin: string): void {
  const list: string[] = [];
  faults.set(page, list);
  page.on('console', (message) => {
    if (message.type() === 'error' || /content security policy|trusted type/i.test(message.text()))
      list.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => {
    list.push(`page: ${error.stack ?? error.message}`);
  });
  watchRequests(page);
  page.on('request', (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (protocol.startsWith('http') && target !== origin) list.push(`foreign request: ${request.url()}`);
  });
}

/** Returns what went wrong in a page so far. */
export const faultsOf = (page: Page): readonly string[] => faults.get(page) ?? [];

/** Expects that the page neither reported an error nor broke its content security policy. */
export function expectNoFaults(page: Page): void {
  expect(faultsOf(page)).toEqual([]);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Returns one line for each violation of WCAG 2.2 AA that axe finds. It runs through the debugger's
 * protocol, so the page's content security policy stays on.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(
    async (tags) =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(document, { runOnly: { type: 'tag', values: tags } }),
    AXE_TAGS,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.failureSummary ?? ''}`.replaceAll(/\s+/g, ' ')),
  );
}

/** Returns the pixels by which the page is wider than its window. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/**
 * Calls the API as the program of a user, with the key of the organization.
 * @throws Error with the answer when it is no success
 */
export async function api(path: string, body?: unknown, portal = inject('portal')): Promise<Response> {
  const { url, org_id, api_key } = portal;
  const idempotency = body === undefined ? {} : { 'idempotency-key': randomUUID() };
  const answer = await confirmed(() =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${api_key}`,
        'x-org-id': org_id,
        'x-org-api-key': api_key,
        'content-type': 'application/json',
        ...idempotency,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}
