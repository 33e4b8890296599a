// The operator in a browser, and dead letters in the service of the browser tests.
import type { Page } from 'playwright-core';
import { inject } from 'vitest';
import { localNatsUrl } from '../../../ops/launch/secrets.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { attachLog, type Log } from '../../../ops/platform/nats/open_log.ts';
import { openPage, type PageOptions } from './browser.ts';

const COOKIE = 'svc_operator';

/** Opens a page of the operator, who is logged in. */
export async function operatorPage(at: string, options: Pick<PageOptions, 'context'> = {}): Promise<Page> {
  const { url, admin_token } = inject('portal');
  const answer = await fetch(`${url}/admin/session`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin_token}` },
  });
  const value = (answer.headers.getSetCookie()[0] ?? '').split(';')[0]?.slice(`${COOKIE}=`.length) ?? '';
  const { hostname } = new URL(url);
  const cookie = {
    name: COOKIE,
    value,
    domain: hostname,
    path: '/admin',
    expires: -1,
    httpOnly: true,
    secure: false,
    sameSite: 'Strict' as const,
  };
  const storageState = { cookies: [cookie], origins: [] };
  return openPage({ at: `/operator/${at}`, loggedIn: false, context: { ...options.context, storageState } });
}

/** Runs work with the log of the service. */
export async function withLog<T>(work: (log: Log) => Promise<T>): Promise<T> {
  const nc = await connectNats({
    url: localNatsUrl(inject('portal').data_dir),
    name: 'browser-tests',
    waitMs: 5000,
  });
  try {
    return await work(await attachLog(nc));
  } finally {
    await nc.close();
  }
}
