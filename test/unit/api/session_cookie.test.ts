import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { checkSameSite, sessionCookieOf, setSessionCookie } from '../../../api/http/session_cookie.ts';

const TOKEN = 'aGVhZA.Ym9keQ.c2ln';
const OTHER = 'aGVhZA.b3RoZXI.c2ln';

describe('the session cookie', () => {
  it.each([
    ['alone', `svc_session=${TOKEN}`, TOKEN],
    ['among others', `a=1; svc_session=${TOKEN}; b=2`, TOKEN],
    ['without blanks', `a=1;svc_session=${TOKEN};b=2`, TOKEN],
    ['in quotes', `svc_session="${TOKEN}"`, TOKEN],
    ['twice the same', `svc_session=${TOKEN}; svc_session=${TOKEN}`, TOKEN],
    ['twice, not the same', `svc_session=${OTHER}; svc_session=${TOKEN}`, null],
    ['beside one that is no token', `svc_session=; svc_session=${TOKEN}`, null],
    ['under a longer name', `xsvc_session=${TOKEN}`, null],
    ['under a name in other case', `SVC_SESSION=${TOKEN}`, null],
    ['as the value of another', `a=svc_session=${TOKEN}`, null],
    ['empty', 'svc_session=', null],
    ['without a value', 'svc_session', null],
    ['with one quote', `svc_session="${TOKEN}`, null],
    ['with an API key', 'svc_session=sk_svc_0123456789abcdef', null],
    ['not at all', undefined, null],
  ])('%s', (_, cookie, token) => {
    expect(sessionCookieOf({ cookie })).toBe(token);
  });

  it('the session cookie is set so that no page reads it and no other site sends it', () => {
    const set = setSessionCookie(TOKEN, { maxAgeS: 60, secure: true });
    expect(set.split('; ')).toEqual([
      `svc_session=${TOKEN}`,
      'Path=/',
      'Max-Age=60',
      'HttpOnly',
      'SameSite=Strict',
      'Secure',
    ]);
    expect(setSessionCookie('', { maxAgeS: 0, secure: false })).toBe(
      'svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
    );
  });
});

describe('a request by cookie that changes something', () => {
  const host = 'app.example:8080';
  const passes = (headers: IncomingHttpHeaders, method = 'POST'): boolean => {
    try {
      checkSameSite(method, { host, ...headers });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error;
      return false;
    }
  };

  it.each<[string, IncomingHttpHeaders, boolean]>([
    ['without any proof', {}, false],
    ['from a page of our own', { 'sec-fetch-site': 'same-origin' }, true],
    [
      'from a page of our own behind a proxy that changes Host',
      { 'sec-fetch-site': 'same-origin', origin: 'https://shown.example' },
      true,
    ],
    ['from another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, false],
    ['from a neighbouring subdomain', { 'sec-fetch-site': 'same-site', origin: 'https://evil.app.example' }, false],
    [
      'from another site, with an Origin that looks like ours',
      { 'sec-fetch-site': 'cross-site', origin: `http://${host}` },
      false,
    ],
    ['from another site, with a custom header', { 'sec-fetch-site': 'cross-site', 'x-requested-with': 'x' }, false],
    ['by hand', { 'sec-fetch-site': 'none' }, false],
    ['by hand, repeating what another site began', { 'sec-fetch-site': 'none', origin: 'https://evil.example' }, false],
    ['by hand, from our own page', { 'sec-fetch-site': 'none', origin: `http://${host}` }, true],
    ['with a value of Sec-Fetch-Site that is not known', { 'sec-fetch-site': 'same-planet' }, false],
    ['with our Origin', { origin: `http://${host}` }, true],
    ['with our Origin, as a proxy ends TLS', { origin: `https://${host}` }, true],
    ['with our Origin and a Host in other case', { origin: 'http://app.example', host: 'App.Example' }, true],
    [
      "with our Origin and a Host that names the scheme's port",
      { origin: 'https://app.example', host: 'app.example:443' },
      true,
    ],
    ['with our Origin on IPv6', { origin: 'http://[::1]:8080', host: '[::1]:8080' }, true],
    [
      'with the Origin that a proxy was asked for',
      { origin: 'https://shown.example', 'x-forwarded-host': 'shown.example, inner' },
      true,
    ],
    [
      'with another Origin than a proxy was asked for',
      { origin: 'https://evil.example', 'x-forwarded-host': 'shown.example' },
      false,
    ],
    ['with an Origin on another port', { origin: 'http://app.example:8081' }, false],
    ['with an Origin without our port', { origin: 'http://app.example' }, false],
    ['with the Origin of another host', { origin: 'http://evil.example' }, false],
    ['with an Origin that ends like ours', { origin: `http://evil-${host}` }, false],
    ['with an Origin that begins like ours', { origin: 'http://app.example.evil.example:8080' }, false],
    ['with the Origin null', { origin: 'null' }, false],
    ['with the Origin null and no Host', { origin: 'null', host: undefined }, false],
    ['with an empty Origin', { origin: '' }, false],
    ['with an Origin that is no page', { origin: `ftp://${host}` }, false],
    [
      'with an Origin of another host and a custom header',
      { origin: 'http://evil.example', 'x-requested-with': 'x' },
      false,
    ],
    ['with a custom header', { 'x-requested-with': 'XMLHttpRequest' }, true],
  ])('a changing request by cookie from %s: passes is %o', (_, headers, expected) => {
    expect(passes(headers)).toBe(expected);
  });

  it('a changing request is recognised by its method; a read needs no proof', () => {
    for (const method of ['GET', 'HEAD']) expect(passes({}, method)).toBe(true);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) expect(passes({}, method)).toBe(false);
  });
});
