// The pure parts of the portal's frame: shortcuts, routes, palette, and where a login leads.
import { describe, expect, it } from 'vitest';
import { RequestError, errorOfAnswer, errorOfThrown, isAbort } from '../../../api/portal/web/client/error.ts';
import { randomId } from '../../../api/portal/web/client/random_id.ts';
import { ownPath } from '../../../api/portal/web/screens/login/own_path.ts';
import { snippetsFor } from '../../../api/portal/web/screens/start/snippets.ts';
import { crumbsOf } from '../../../api/portal/web/shell/crumbs.ts';
import { isLetterKey, repeatedKeys, shownKeys, tinyKeys } from '../../../api/portal/web/shell/key_names.ts';
import { matchRoute } from '../../../api/portal/web/shell/match_route.ts';
import { matchScore, rank, targetsOf } from '../../../api/portal/web/shell/palette_match.ts';

describe('shortcuts', () => {
  it.each([
    ['j', 'j'],
    ['Y', 'Shift+Y'],
    ['?', '[Shift]+?'],
    ['g t', 'g t'],
    ['g /', 'g [Shift]+/'],
    ['Mod+k', '$mod+k'],
    ['Ctrl+Enter', 'Control+Enter'],
    ['Shift+ArrowLeft', 'Shift+ArrowLeft'],
    ['Space', 'Space'],
    ['+', '[Shift]+(\\+)'],
  ])('%s is given to the listener as %s', (keys, tiny) => {
    expect(tinyKeys(keys)).toBe(tiny);
  });

  it('are shown as the keys of the keyboard', () => {
    expect([shownKeys('Mod+k', true), shownKeys('Mod+k', false), shownKeys('g t', false)]).toEqual([
      ['⌘K'],
      ['Ctrl+K'],
      ['g', 't'],
    ]);
  });

  it('that are a single letter, and sequences that begin with one, can be switched off', () => {
    expect(['j', '?', 'g t', 'Escape', 'Mod+k'].filter(isLetterKey)).toEqual(['j', '?', 'g t']);
  });

  it('with two meanings in one table are found', () => {
    expect(repeatedKeys([{ keys: ['j', 'ArrowDown'] }, { keys: 'Shift+Y' }, { keys: 'Y' }])).toEqual(['Shift+Y']);
  });
});

describe('routes', () => {
  const routes = [{ path: '/o/:org_id' }, { path: '/o/:org_id/traces' }, { path: '/o/:org_id/traces/:trace_id' }];

  it('are found by their segments, and an id may hold a slash or a percent sign', () => {
    expect(matchRoute(routes, '/o/org_1/traces/a%2Fb%25')).toEqual({
      route: routes[2],
      params: { org_id: 'org_1', trace_id: 'a/b%' },
    });
    expect(matchRoute(routes, '/o/org_1/traces/')?.route).toBe(routes[1]);
    expect(matchRoute(routes, '/o/org_1/nothing')).toBeNull();
  });

  it('with an invalid encoding keep the text as it is', () => {
    expect(matchRoute(routes, '/o/%E0%A4%A/traces')?.params).toEqual({ org_id: '%E0%A4%A' });
  });

  it('give the pages above a page as crumbs', () => {
    const titles = new Map([['/o/:org_id/traces', 'Traces']]);
    expect(crumbsOf('/o/org_1/traces/trc_1', titles)).toEqual([{ title: 'Traces', href: '/o/org_1/traces' }]);
    expect(crumbsOf('/o/org_1/traces', titles)).toEqual([]);
  });
});

describe('the palette', () => {
  const exists = (path: string): boolean => ['/traces/', '/sessions/', '/users/'].includes(path);

  it('opens the thing that a pasted id names, if it has a page', () => {
    expect(targetsOf(' trc_0123456789abcdef ', exists)).toEqual([
      { label: 'Open trace trc_0123456789abcdef', path: '/traces/trc_0123456789abcdef' },
    ]);
    expect(targetsOf('run-12', exists).map(({ path }) => path)).toEqual([
      '/traces/run-12',
      '/sessions/run-12',
      '/users/run-12',
    ]);
  });

  it('searches for words behind a question mark, and opens nothing for words', () => {
    expect(targetsOf('?sofa & co', exists)).toEqual([
      { label: 'Search for sofa & co', path: '/search?q=sofa%20%26%20co' },
    ]);
    expect([targetsOf('traces', exists), targetsOf('?', exists), targetsOf('a b', exists)]).toEqual([[], [], []]);
  });

  it('matches every word, beginnings of words first', () => {
    expect(matchScore('Copy the address', 'addr copy')).toBeGreaterThan(
      matchScore('Recopy the readdress', 'addr copy'),
    );
    expect(matchScore('Copy the address', 'copy link')).toBe(0);
  });

  it('puts what was used often before what matches as well, and keeps groups together', () => {
    const entries = ['Traces', 'Trees', 'Tracks'].map((label, at) => ({
      id: label,
      label,
      group: at === 1 ? 'B' : 'A',
    }));
    expect(rank(entries, 'tr', { Tracks: 10 }).map(({ label }) => label)).toEqual(['Tracks', 'Traces', 'Trees']);
  });
});

describe('the page after a login', () => {
  const origin = 'http://127.0.0.1:8080';

  it.each([
    ['/o/org_1/traces?t=1h', '/o/org_1/traces?t=1h'],
    [null, '/'],
    ['//other.example/x', '/'],
    ['/\\other.example', '/'],
    ['https://other.example', '/'],
    ['javascript:alert(1)', '/'],
    ['/login?to=/login', '/'],
  ])('asked for as %s is %s', (asked, path) => {
    expect(ownPath(asked, origin)).toBe(path);
  });
});

describe('the error of a request', () => {
  const headers = (entries: Record<string, string>): Headers => new Headers(entries);

  it('has the code, detail and request id of the API, and the seconds of Retry-After', () => {
    const body = { detail: 'Too many requests.', code: 'rate_limited', request_id: 'req_1' };
    expect(errorOfAnswer(429, body, headers({ 'retry-after': '7' }))).toMatchObject({
      status: 429,
      code: 'rate_limited',
      detail: 'Too many requests.',
      request_id: 'req_1',
      retry_after: 7,
    });
  });

  it('names the status where a proxy answered with another body', () => {
    expect(errorOfAnswer(504, '<html>', headers({ 'x-request-id': 'req_2' }))).toMatchObject({
      code: 'http_504',
      request_id: 'req_2',
      retry_after: null,
    });
  });

  it('has the code network where no answer came, and stays an abort where the request was cancelled', () => {
    expect(errorOfThrown(new TypeError('Failed to fetch'))).toMatchObject({ status: 0, code: 'network' });
    const abort = new DOMException('cancelled', 'AbortError');
    expect([errorOfThrown(abort), isAbort(abort)]).toEqual([abort, true]);
    const known = new RequestError(404, { code: 'trace_not_found', detail: 'No trace.', request_id: null });
    expect(errorOfThrown(known)).toBe(known);
  });
});

describe('the first steps', () => {
  it('write the address, the organization and the key into every snippet that a program runs', () => {
    const values = { url: 'http://127.0.0.1:8080', org_id: 'org_1', key: 'sk_svc_x' };
    for (const { id, blocks } of snippetsFor(values)) {
      const text = blocks.map((block) => block.text).join('\n');
      expect([id, text.includes(values.url), text.includes(values.key)]).toEqual([id, true, true]);
    }
  });

  it('make idempotency keys that are UUIDs of version 4', () => {
    expect(randomId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
