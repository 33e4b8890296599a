import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import {
  FETCH_MS_MAX,
  FIRST_RETRY_MS,
  REFRESH_MS,
  RETRY_MS,
  SET_BYTES_MAX,
  UNKNOWN_KEY_REST_MS,
} from '../../../api/http/jwks.ts';
import { createTokenVerifier } from '../../../api/http/jwt.ts';
import { aKey, NOW_MS, signed, type SigningKey, TestProvider } from './an_issuer.ts';

let first: SigningKey;
let second: SigningKey;
let stranger: SigningKey;
beforeAll(async () => {
  [first, second, stranger] = await Promise.all([
    aKey('ES256', 'first'),
    aKey('ES256', 'second'),
    aKey('ES256', 'stranger'),
  ]);
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
  vi.useRealTimers();
});

/** Returns a verifier whose fetches go to `provider`, and the problems that it reported. */
function start(provider: TestProvider) {
  const problems: string[] = [];
  const verifier = createTokenVerifier({
    jwksUrl: 'https://idp.example/jwks',
    audience: undefined,
    now: () => NOW_MS,
    fetch: provider.fetch,
    onProblem: (problem) => void problems.push(problem),
  });
  // The report of the missing audience is not the subject of these tests.
  problems.length = 0;
  closers.push(() => {
    verifier.close();
  });
  /** Returns 'ok', or the code with which the token was rejected. */
  const outcome = async (token: string): Promise<string> => {
    try {
      return (await verifier.verify(token)).user_id === 'user_1' ? 'ok' : 'another user';
    } catch (error) {
      return error instanceof ApiError ? error.code : String(error);
    }
  };
  return { verifier, problems, outcome };
}

const away = () => Promise.reject(new Error('connection refused'));

describe('the keys of a provider', () => {
  it("a provider's keys are fetched once for many tokens that arrive together", async () => {
    const provider = new TestProvider(first);
    const gate = Promise.withResolvers<Response>();
    provider.answer = () => gate.promise;
    const { outcome } = start(provider);
    const token = await signed(first);
    const early = Promise.all(Array.from({ length: 20 }, () => outcome(token)));
    gate.resolve(new Response(JSON.stringify({ keys: [first.jwk] })));
    expect(await early).toEqual(Array(20).fill('ok'));
    expect(provider.fetches).toBe(1);
  });

  it("a provider's keys are fetched at most once in UNKNOWN_KEY_REST_MS for unknown ids", async () => {
    const provider = new TestProvider(first);
    const { outcome } = start(provider);
    expect(await outcome(await signed(first))).toBe('ok');
    const flood = async () => {
      const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => signed(stranger, {}, { kid: `kid-${n}` })));
      expect(new Set(await Promise.all(tokens.map(outcome)))).toEqual(new Set(['unauthenticated']));
    };
    await flood();
    expect(provider.fetches).toBe(1);
    vi.advanceTimersByTime(UNKNOWN_KEY_REST_MS - 1);
    await flood();
    expect(provider.fetches).toBe(1);
    vi.advanceTimersByTime(1);
    await flood();
    expect(provider.fetches).toBe(2);
    await flood();
    expect(provider.fetches).toBe(2);
  });

  it('a new key is accepted when its id appears and the last fetch is UNKNOWN_KEY_REST_MS ago', async () => {
    const provider = new TestProvider(first);
    const { outcome } = start(provider);
    expect(await outcome(await signed(first))).toBe('ok');
    provider.keys = [first.jwk, second.jwk];
    expect(await outcome(await signed(second))).toBe('unauthenticated');
    vi.advanceTimersByTime(UNKNOWN_KEY_REST_MS);
    expect(await outcome(await signed(second))).toBe('ok');
    expect(await outcome(await signed(first))).toBe('ok');
  });

  it('a withdrawn key ends within REFRESH_MS without a request, for tokens seen before too', async () => {
    const provider = new TestProvider(first, second);
    const { verifier, outcome } = start(provider);
    const token = await signed(first);
    expect(await outcome(token)).toBe('ok');
    expect(await outcome(token)).toBe('ok');
    expect(verifier.verify(token)).not.toBeInstanceOf(Promise);
    provider.keys = [second.jwk];
    await vi.advanceTimersByTimeAsync(REFRESH_MS);
    expect(await outcome(token)).toBe('unauthenticated');
    expect(await outcome(await signed(second))).toBe('ok');
  });

  it('a key whose id was given to another key ends', async () => {
    const provider = new TestProvider(first);
    const { outcome } = start(provider);
    const token = await signed(first);
    expect(await outcome(token)).toBe('ok');
    provider.keys = [{ ...second.jwk, kid: 'first' }];
    await vi.advanceTimersByTimeAsync(REFRESH_MS);
    expect(await outcome(token)).toBe('unauthenticated');
    expect(await outcome(await signed(second, {}, { kid: 'first' }))).toBe('ok');
  });

  it('a token that was being verified while the keys changed is not cached', async () => {
    const provider = new TestProvider(first);
    const { verifier, outcome } = start(provider);
    expect(await outcome(await signed(first, { jti: 'other' }))).toBe('ok');
    const token = await signed(first);
    const verifying = verifier.verify(token);
    provider.keys = [];
    await vi.advanceTimersByTimeAsync(REFRESH_MS);
    await verifying;
    expect(await outcome(token)).toBe('unauthenticated');
  });

  it("a provider's keys stay valid while it is away, which is logged once", async () => {
    const provider = new TestProvider(first);
    const { outcome, problems } = start(provider);
    const token = await signed(first);
    expect(await outcome(token)).toBe('ok');
    provider.answer = away;
    await vi.advanceTimersByTimeAsync(REFRESH_MS + 5 * RETRY_MS);
    expect(provider.fetches).toBe(1 + 1 + 5);
    expect(await outcome(await signed(first, { jti: 'new' }))).toBe('ok');
    expect(problems).toEqual([expect.stringContaining('stay in use')]);
    provider.answer = null;
    provider.keys = [second.jwk];
    await vi.advanceTimersByTimeAsync(RETRY_MS);
    expect(await outcome(token)).toBe('unauthenticated');
    expect(await outcome(await signed(second))).toBe('ok');
    provider.answer = away;
    await vi.advanceTimersByTimeAsync(REFRESH_MS);
    expect(problems).toHaveLength(2);
  });

  it.each([
    ['away', away],
    ['failing', () => new Response('{"keys":[]}', { status: 503 })],
    ['answering with a page', () => new Response('<html></html>')],
    ['answering with something else', () => new Response('{"keys":{}}')],
    ['answering without end', () => new Response('{"keys":[]}'.padEnd(SET_BYTES_MAX + 1))],
  ])('tokens are 502 while the keys were never fetched because the provider is %s', async (_, answer) => {
    const provider = new TestProvider(first);
    provider.answer = answer;
    const { outcome, problems } = start(provider);
    const token = await signed(first);
    expect(await outcome(token)).toBe('upstream_unavailable');
    expect(await outcome(token)).toBe('upstream_unavailable');
    expect(provider.fetches).toBe(1);
    expect(problems).toEqual([expect.stringContaining('502')]);
    provider.answer = null;
    await vi.advanceTimersByTimeAsync(FIRST_RETRY_MS);
    expect(await outcome(token)).toBe('ok');
  });

  it('a fetch of keys is not waited for longer than FETCH_MS_MAX', async () => {
    const provider = new TestProvider(first);
    provider.answer = (signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
    const { outcome } = start(provider);
    const answered = outcome(await signed(first));
    await vi.advanceTimersByTimeAsync(FETCH_MS_MAX);
    expect(await answered).toBe('upstream_unavailable');
  });

  it('a fetch with a stalled body is not waited for longer than FETCH_MS_MAX', async () => {
    const provider = new TestProvider(first);
    provider.answer = (signal) =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            controller.enqueue(Buffer.from('{"keys":['));
            signal?.addEventListener('abort', () => {
              controller.error(signal.reason);
            });
          },
        }),
      );
    const { outcome } = start(provider);
    const answered = outcome(await signed(first));
    await vi.advanceTimersByTimeAsync(FETCH_MS_MAX);
    expect(await answered).toBe('upstream_unavailable');
  });

  it('a set of exactly SET_BYTES_MAX is accepted', async () => {
    const provider = new TestProvider(first);
    provider.answer = () => new Response(JSON.stringify({ keys: provider.keys }).padEnd(SET_BYTES_MAX));
    const { outcome } = start(provider);
    expect(await outcome(await signed(first))).toBe('ok');
  });

  it('no keys are fetched after the verifier is closed, whether or not a fetch is in flight', async () => {
    const provider = new TestProvider(first);
    const { verifier, outcome } = start(provider);
    expect(await outcome(await signed(first))).toBe('ok');
    verifier.close();
    await vi.advanceTimersByTimeAsync(10 * REFRESH_MS);
    expect(provider.fetches).toBe(1);

    const stalled = new TestProvider(first);
    const gate = Promise.withResolvers<Response>();
    stalled.answer = () => gate.promise;
    start(stalled).verifier.close();
    gate.resolve(new Response('{"keys":[]}'));
    await vi.advanceTimersByTimeAsync(10 * REFRESH_MS);
    expect(stalled.fetches).toBe(1);
  });
});
