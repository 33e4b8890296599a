// The choice of the upstream: the routing table, its weights, and the circuit of an upstream.
import { describe, expect, test } from 'vitest';
import { Circuit } from '../../../ops/platform/llm/circuit.ts';
import { drawn, globOf, openRoutes, parseRoutes, RoutesError } from '../../../ops/platform/llm/routes.ts';

describe('the routing table', () => {
  test.each([
    ['*', 'anything/at all', true],
    ['gpt-*', 'gpt-4o', true],
    ['gpt-*', 'a-gpt-4o', false],
    ['*-mini', 'gpt-4o-mini', true],
    ['gpt-4?', 'gpt-4o', true],
    ['gpt-4?', 'gpt-4', false],
    ['a.b', 'axb', false],
    ['(a|b)+', 'a', false],
    ['(a|b)+', '(a|b)+', true],
    ['gpt*', `gpt${'x'.repeat(2000)}`, false],
    ['*a*b?c*', 'xaybbzzc', false],
    ['*a*b?c*', 'xaybbzcbxc.', true],
    ['?', '😀', true],
    ['', '', true],
    // Each * of a backtracking matcher multiplies the time by the length of the name.
    ['*a*a*a*a*a*a*a*b', 'a'.repeat(1024), false],
  ])('the routing table gives for %s and %s: %s', (pattern, model, expected) => {
    expect(globOf(pattern)(model)).toBe(expected);
  });

  test('the routing table gives the upstreams of the first matching route, and the settings’ for the rest', () => {
    const [route] = parseRoutes(
      '[{"model":"a*","upstreams":[{"base_url":"https://x.example/v1/","api_key_env":"K"},{"base_url":"http://y/v1","timeout_ms":5}]}]',
      {
        K: 'key',
      },
    );
    expect(route?.targets.map(({ base_url, api_key, timeout_ms }) => [base_url.href, api_key, timeout_ms])).toEqual([
      ['https://x.example/v1', 'key', 600_000],
      ['http://y/v1', null, 5],
    ]);
    const own = openRoutes({ SERVICE_LLM_BASE_URL: 'http://z/v1', SERVICE_LLM_API_KEY: 'k' }, {});
    expect(own.targetsOf('any', 'openai')).toEqual(own.standardOf('openai'));
    expect(own.standardOf('openai')[0]).toMatchObject({ api_key: 'k', model: null });
    expect(openRoutes({}, {}).standardOf('openai')).toEqual([]);
  });

  test('the routing table gives each API its own upstreams; an upstream overrides its route', () => {
    const [anthropic, openai] = parseRoutes(
      JSON.stringify([
        {
          model: 'claude-*',
          api: 'anthropic',
          credential: 'caller',
          upstreams: [{ base_url: 'http://a' }, { base_url: 'http://b/v1', credential: 'operator' }],
        },
        { model: '*', upstreams: [{ base_url: 'http://c' }] },
      ]),
      {},
    );
    const shown = anthropic?.targets.map(({ api, credential, base_url }) => [api, credential, base_url.href]);
    expect(shown).toEqual([
      ['anthropic', 'caller', 'http://a/v1'],
      ['anthropic', 'operator', 'http://b/v1'],
    ]);
    expect(openai?.targets[0]).toMatchObject({ api: 'openai', credential: 'operator' });
    const own = openRoutes({ SERVICE_ANTHROPIC_BASE_URL: 'https://api.example/' }, {});
    expect(own.targetsOf('any', 'anthropic').map(({ base_url }) => base_url.href)).toEqual(['https://api.example/v1']);
    expect(own.targetsOf('any', 'openai')).toEqual([]);
  });

  test('weights decide which upstream is tried first; upstreams of weight 0 are fallbacks', () => {
    const upstreams = [0, 3, 1].map((weight, index) => ({ base_url: `http://${index}/v1`, weight }));
    const [route] = parseRoutes(JSON.stringify([{ model: '*', upstreams }]), {});
    const order = (random: number) =>
      drawn(route?.targets ?? [], () => random).map(({ base_url }) => base_url.hostname);
    // URLs write the number 1 as the address 0.0.0.1.
    expect(order(0)).toEqual(['0.0.0.1', '0.0.0.2', '0.0.0.0']);
    expect(order(0.74)).toEqual(['0.0.0.1', '0.0.0.2', '0.0.0.0']);
    expect(order(0.75)).toEqual(['0.0.0.2', '0.0.0.1', '0.0.0.0']);
  });

  test.each([
    ['no JSON', '{', /no JSON/],
    ['no list', '{}', /array/],
    ['no upstream', '[{"model":"a","upstreams":[]}]', /\[0\]\.upstreams/],
    ['another scheme', '[{"model":"a","upstreams":[{"base_url":"ftp://x"}]}]', /base_url: must be a URL/],
    ['a user in the URL', '[{"model":"a","upstreams":[{"base_url":"http://u:p@x/v1"}]}]', /without a user/],
    [
      'an unknown field',
      '[{"model":"a","upstreams":[{"base_url":"http://x","api_key":"k"}]}]',
      /\[0\]\.upstreams\[0\]/,
    ],
    [
      'a key that is not there',
      '[{"model":"a","upstreams":[{"base_url":"http://x","api_key_env":"MISSING"}]}]',
      /MISSING holds no key/,
    ],
  ])('a routing table with %s is rejected naming the place', (_, text, message) => {
    expect(() => parseRoutes(text, {})).toThrow(RoutesError);
    expect(() => parseRoutes(text, {})).toThrow(message);
  });

  test('an unreadable routing table stops the start', () => {
    expect(() => openRoutes({ SERVICE_GATEWAY_ROUTES: '/nowhere/routes.json' }, {})).toThrow(/cannot be read/);
  });
});

describe('the circuit of an upstream', () => {
  test('opens after ten failures in a row and admits one trial after each five seconds', () => {
    let now = 1000;
    const circuit = new Circuit(() => now);
    for (let i = 0; i < 9; i++) circuit.failed();
    circuit.succeeded();
    for (let i = 0; i < 9; i++) circuit.failed();
    expect(circuit.admits()).toBe(true);
    circuit.failed();
    expect(circuit.admits()).toBe(false);
    now += 5000;
    expect([circuit.admits(), circuit.admits()]).toEqual([true, false]);
    circuit.failed();
    now += 4999;
    expect(circuit.admits()).toBe(false);
    now += 1;
    expect(circuit.admits()).toBe(true);
    circuit.succeeded();
    expect([circuit.admits(), circuit.admits()]).toEqual([true, true]);
  });
});
