// The login at a real OIDC provider in a real browser: through the pages of the provider to the address that was asked
// for, as a person without a membership, refused at the provider, and again in the middle of an edit. The provider is at
// another site than the portal, so the browser holds cookies back as it does in production.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../ops/launch/process/ports.ts';
import { CLIENT, startOidc, type TestOidc } from '../support/oidc.ts';
import { startService, stopServices } from '../support/service_process.ts';
import { axeViolations, faultsOf, openPage, settled } from './support/browser.ts';
import { portalBuilt, type PortalService } from './support/portal_service.ts';

/** The owner of the first organization, as the bootstrap of a local service names it. */
const OWNER = 'user_local';
const TO = '/traces?outcome=error';

let oidc: TestOidc;
let portal: PortalService;

beforeAll(async () => {
  const port = await freePort();
  const public_url = `http://localhost:${port}`;
  oidc = await startOidc('ES256', [`${public_url}/v1/session/oidc/callback`]);
  const service = await startService({
    env: {
      SERVICE_PORT: String(port),
      SERVICE_OPEN: 'false',
      SERVICE_JWT_JWKS_URL: oidc.jwksUrl,
      SERVICE_JWT_ISSUER: oidc.issuer,
      SERVICE_JWT_AUDIENCE: 'https://millrace.example',
      SERVICE_OIDC_CLIENT_ID: CLIENT.client_id,
      SERVICE_OIDC_CLIENT_SECRET: CLIENT.client_secret,
      SERVICE_PUBLIC_URL: public_url,
    },
  });
  await portalBuilt(service.baseUrl);
  portal = {
    url: public_url,
    org_id: service.orgId,
    api_key: service.secrets.api_key,
    admin_token: service.secrets.admin_token,
    data_dir: service.dataDir,
    cookie: { name: '', value: '' },
  };
});
afterAll(async () => {
  await stopServices();
  await oidc.stop();
});

const orgPath = (path: string): string => `/o/${portal.org_id}${path}`;

/** Opens a page of a browser that has no session. The pages of the provider would load a font of another host. */
async function open(at: string): Promise<Page> {
  const page = await openPage({ at: 'about:blank', loggedIn: false, portal });
  await page.route('https://fonts.googleapis.com/**', (route) => route.abort());
  await page.goto(at);
  return page;
}

/** Logs in on the pages of the provider: the name of the person, and then the consent. */
async function logInAtProvider(page: Page, login: string): Promise<void> {
  await page.waitForURL((url) => url.origin === oidc.issuer);
  await page.locator('input[name="login"]').fill(login);
  await page.locator('input[name="password"]').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** Faults of the portal itself: requests to the provider are what a login is, and the first question for a session is 401. */
const ownFaults = (page: Page): string[] =>
  faultsOf(page).filter(
    (fault) =>
      !fault.includes(oidc.issuer) && !fault.includes('fonts.googleapis.com') && !fault.includes('status of 401'),
  );

it('a person who follows a link logs in at the provider and lands where the link led, with a session of 12 hours', async () => {
  const page = await open(orgPath(TO));
  await page.waitForURL((url) => url.pathname === '/login');
  const way = page.getByRole('link', { name: 'Log in at your identity provider' });
  await way.waitFor();
  expect(await page.getByText('npm run login').count()).toBe(0);
  expect(await axeViolations(page)).toEqual([]);
  await way.click();
  await logInAtProvider(page, OWNER);
  await page.waitForURL((url) => url.origin === portal.url && url.pathname + url.search === orgPath(TO));
  await page.getByRole('heading', { level: 1, name: 'Traces' }).waitFor();
  await settled(page);
  expect(page.url()).not.toMatch(/code=|state=/);
  const cookies = await page.context().cookies(portal.url);
  const session = cookies.find(({ name }) => name === 'svc_session');
  expect(session).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  const hours = ((session?.expires ?? 0) - Date.now() / 1000) / 3600;
  expect(hours).toBeGreaterThan(11);
  expect(hours).toBeLessThanOrEqual(12);
  expect(ownFaults(page)).toEqual([]);

  // The provider remembers the person, so after a logout one click leads back in.
  await page.goto(orgPath('/me'));
  await settled(page);
  await page.getByRole('button', { name: /^Account/ }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.waitForURL((url) => url.pathname === '/login');
  expect((await page.context().cookies(portal.url)).some(({ name }) => name === 'svc_session')).toBe(false);
});

it('after the login a person without an organization reads that they belong to none', async () => {
  const page = await open('/login');
  await page.getByRole('link', { name: 'Log in at your identity provider' }).click();
  await logInAtProvider(page, 'stranger');
  await page.waitForURL((url) => url.origin === portal.url && url.pathname === '/');
  await page.getByRole('heading', { level: 1, name: 'No organization yet' }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  expect(ownFaults(page)).toEqual([]);
});

it('a login that is cancelled at the provider leads to the login page, which says so', async () => {
  const page = await open('/login');
  await page.getByRole('link', { name: 'Log in at your identity provider' }).click();
  await page.waitForURL((url) => url.origin === oidc.issuer);
  await page.getByRole('link', { name: /Cancel/ }).click();
  await page.waitForURL((url) => url.origin === portal.url && url.pathname === '/login');
  await page.getByRole('alert').waitFor();
  await page.getByRole('link', { name: 'Log in at your identity provider' }).waitFor();
  expect(ownFaults(page)).toEqual([]);
});

it('a session that ends in the middle of an edit is renewed in another tab, and nothing typed is lost', async () => {
  const page = await open('/login');
  await page.getByRole('link', { name: 'Log in at your identity provider' }).click();
  await logInAtProvider(page, OWNER);
  await page.waitForURL((url) => url.origin === portal.url && url.pathname !== '/login');
  await page.goto(orgPath('/prompts'));
  await settled(page);
  await page.getByRole('button', { name: 'Create prompt' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Create prompt' });
  await dialog.getByLabel('Name').fill('typed-before');
  await dialog.getByRole('textbox', { name: 'Template' }).fill('Answer {{question}}');
  await page.context().clearCookies({ name: 'svc_session' });
  await page.keyboard.press('Control+Enter');
  const ended = page.getByRole('dialog', { name: 'Your session has ended' });
  const [tab] = await Promise.all([
    page.context().waitForEvent('page'),
    ended.getByRole('link', { name: 'Log in at the identity provider in another tab' }).click(),
  ]);
  // The provider remembers the person and asks nothing.
  await tab.waitForURL((url) => url.origin === portal.url && url.pathname !== '/login');
  await tab.close();
  await page.evaluate(() => dispatchEvent(new Event('focus')));
  await page.getByRole('heading', { level: 1, name: 'typed-before' }).waitFor();
  expect(await ended.count()).toBe(0);
});
