import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EnvError, parseEnv } from '../../../ops/platform/env.ts';

const problems = (source: Record<string, string>): string => {
  try {
    parseEnv(source);
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(EnvError);
    return (error as EnvError).message;
  }
};

describe('settings', () => {
  it('settings are complete without any variable, and an empty one counts as unset', () => {
    expect(parseEnv({}).SERVICE_PORT).toBe(8080);
    expect(parseEnv({ SERVICE_PORT: '', SERVICE_NATS_URL: '' })).toEqual(parseEnv({}));
  });

  it.each([
    ['SERVICE_PORT', '70000', '65535'],
    ['SERVICE_PORT', 'http', 'whole number'],
    ['SERVICE_ENV', 'staging', 'development, production'],
    ['SERVICE_SAMPLING_ENABLED', '1', 'true, false'],
    ['SERVICE_NATS_SYNC', 'never', 'always'],
    ['SERVICE_CLICKHOUSE_URL', 'localhost:8123', 'http'],
    ['SERVICE_PARTITIONS', '0', '1'],
    ['SERVICE_LOG_STREAMS', '33', '32'],
    ['SERVICE_LANDING_NICE', '20', '19'],
    ['SERVICE_BOOTSTRAP_API_KEY', 'abc', 'sk_svc_'],
  ])('%s=%s is rejected in one line that names it and what is accepted', (name, value, takes) => {
    const text = problems({ [name]: value });
    expect(text.split('\n')).toHaveLength(1);
    expect(text).toContain(name);
    expect(text).toContain(takes);
  });

  it('each stream of the ingest log needs 16 MiB', () => {
    const bytes = 4 * 16 * 1024 * 1024;
    expect(problems({ SERVICE_LOG_MAX_BYTES: String(bytes), SERVICE_LOG_STREAMS: '4' })).toBe('');
    expect(problems({ SERVICE_LOG_MAX_BYTES: String(bytes - 1), SERVICE_LOG_STREAMS: '4' })).toBe(
      `SERVICE_LOG_MAX_BYTES: got "${bytes - 1}"; must be at least ${bytes} for SERVICE_LOG_STREAMS=4`,
    );
  });

  it('settings never show a wrong secret', () => {
    const text = problems({
      SERVICE_ADMIN_TOKEN: 'tooshort-secret',
      SERVICE_BOOTSTRAP_API_KEY: 'my-secret-key',
      SERVICE_CLICKHOUSE_URL: 'ftp://user:hunter2@host',
    });
    expect(text.split('\n')).toHaveLength(3);
    for (const secret of ['tooshort-secret', 'my-secret-key', 'hunter2']) expect(text).not.toContain(secret);
  });

  it('settings generate no secret in production', () => {
    expect(problems({ SERVICE_ENV: 'production' }).split('\n')).toHaveLength(4);
  });

  describe('in production', () => {
    const good = {
      SERVICE_ENV: 'production',
      SERVICE_ADMIN_TOKEN: 'Yq3vX0pLr8sKd71m',
      SERVICE_BOOTSTRAP_API_KEY: 'sk_svc_8c1f0a7be93d42561f',
      SERVICE_JWT_SECRET: 'b5Qe2Wz8Rk1Tn6Yh3Ux9Iv4Op7As0DfG',
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD: 'f7a1c93e5b',
    };
    const secrets = Object.keys(good).filter((name) => name !== 'SERVICE_ENV');

    it('random secrets are accepted in production', () => {
      expect(problems(good)).toBe('');
    });

    it.each(secrets)('%s is required in production', (name) => {
      const text = problems({ ...good, [name]: '' });
      expect(text.split('\n')).toHaveLength(1);
      expect(text).toContain(`${name}: got nothing`);
    });

    it.each([
      ['SERVICE_ADMIN_TOKEN', 'changeme-changeme'],
      ['SERVICE_ADMIN_TOKEN', 'your_admin_token_here'],
      ['SERVICE_BOOTSTRAP_API_KEY', 'sk_svc_your_api_key_here'],
      ['SERVICE_JWT_SECRET', 'please-change-this-jwt-secret-to-my-secret'],
      ['SERVICE_CLICKHOUSE_ANALYST_PASSWORD', 'placeholder-1'],
    ])('%s=%s is rejected in production without showing it; development accepts it', (name, value) => {
      const text = problems({ ...good, [name]: value });
      expect(text).toBe(`${name}: got the placeholder of an example; production takes a secret of your own`);
      expect(problems({ ...good, [name]: value, SERVICE_ENV: 'development' })).toBe('');
    });
  });

  it.each(['SERVICE_JWT_ISSUER', 'SERVICE_JWT_AUDIENCE'])(
    'settings reject the key set of a provider in production without %s',
    (missing) => {
      const provider = {
        SERVICE_JWT_JWKS_URL: 'https://idp.example/jwks',
        SERVICE_JWT_ISSUER: 'https://idp.example',
        SERVICE_JWT_AUDIENCE: 'millrace',
        [missing]: '',
      };
      const text = problems({ SERVICE_ENV: 'production', ...provider });
      expect(text.split('\n').filter((line) => line.startsWith('SERVICE_JWT'))).toEqual([
        expect.stringMatching(
          `^${missing}: got nothing; production with SERVICE_JWT_JWKS_URL takes the (iss|aud) of its tokens`,
        ),
      ]);
      expect(problems(provider)).toBe('');
    },
  );

  it.each(['0.0.0.0', '::', '192.168.1.4', 'millrace.internal', '127.evil.example'])(
    'settings without SERVICE_ENV count as production where SERVICE_HOST is %s, and say so',
    (host) => {
      const [first, ...rest] = problems({ SERVICE_HOST: host }).split('\n');
      expect(first).toBe(
        `SERVICE_ENV: got nothing; with SERVICE_HOST "${host}", which other machines reach, it counts as production (development takes generated secrets there too)`,
      );
      expect(rest).toHaveLength(4);
      expect(problems({ SERVICE_HOST: host, SERVICE_ENV: 'development' })).toBe('');
    },
  );

  it.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1'])(
    'settings without SERVICE_ENV count as development where SERVICE_HOST is %s',
    (host) => {
      expect(parseEnv({ SERVICE_HOST: host }).SERVICE_ENV).toBe('development');
    },
  );

  it('settings without SERVICE_ENV count as production where every secret is given', () => {
    const secrets = {
      SERVICE_ADMIN_TOKEN: 'Yq3vX0pLr8sKd71m',
      SERVICE_BOOTSTRAP_API_KEY: 'sk_svc_8c1f0a7be93d42561f',
      SERVICE_JWT_SECRET: 'b5Qe2Wz8Rk1Tn6Yh3Ux9Iv4Op7As0DfG',
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD: 'f7a1c93e5b',
    };
    expect(parseEnv({ ...secrets, SERVICE_HOST: '0.0.0.0' }).SERVICE_ENV).toBe('production');
  });

  it("a provider's key set replaces the secret, in production over TLS only", () => {
    const tokens = { SERVICE_JWT_ISSUER: 'https://idp.example', SERVICE_JWT_AUDIENCE: 'millrace' };
    const withProvider = (url: string) => problems({ SERVICE_ENV: 'production', SERVICE_JWT_JWKS_URL: url, ...tokens });
    expect(withProvider('https://idp.example/jwks')).not.toContain('SERVICE_JWT');
    expect(withProvider('HTTPS://idp.example/jwks')).not.toContain('SERVICE_JWT');
    for (const url of [
      'http://idp.example/jwks',
      'HTTP://idp.example/jwks',
      'ftp://idp.example/jwks',
      'https://user:hunter2@idp.example/jwks',
    ]) {
      expect(withProvider(url)).toContain('SERVICE_JWT_JWKS_URL');
      expect(withProvider(url)).not.toContain('hunter2');
    }
    expect(problems({ SERVICE_JWT_JWKS_URL: 'http://127.0.0.1:9000/jwks' })).toBe('');
  });

  it('SERVICE_CORS_ORIGINS accepts origins exactly as browsers write them', () => {
    expect(parseEnv({}).SERVICE_CORS_ORIGINS).toEqual([]);
    expect(
      parseEnv({ SERVICE_CORS_ORIGINS: 'https://a.example, http://localhost:3000,http://[::1]:8080' })
        .SERVICE_CORS_ORIGINS,
    ).toEqual(['https://a.example', 'http://localhost:3000', 'http://[::1]:8080']);
    for (const bad of [
      '*',
      'null',
      'a.example',
      'https://a.example/',
      'https://a.example/app',
      'https://A.example',
      'https://a.example:443',
      'https://*.a.example',
      'https://user@a.example',
      'ftp://a.example',
      'https://a.example,',
      'https://a.example https://b.example',
    ]) {
      expect([bad, problems({ SERVICE_CORS_ORIGINS: bad })]).toEqual([
        bad,
        `SERVICE_CORS_ORIGINS: got "${bad}"; must be origins as browsers write them, comma-separated, such as https://app.example.com,http://localhost:3000`,
      ]);
    }
  });

  it('all settings are in env.example with their defaults', () => {
    const example = Object.fromEntries(
      readFileSync(new URL('../../../ops/deploy/env.example', import.meta.url), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('SERVICE_'))
        .map((line) => line.split('=') as [string, string]),
    );
    expect(parseEnv(example)).toEqual(parseEnv({}));
    const source = readFileSync(new URL('../../../ops/platform/env.ts', import.meta.url), 'utf8');
    const declared = [...source.matchAll(/^ {2}(SERVICE_[A-Z_]+):/gm)].map(([, name]) => name);
    expect(Object.keys(example).toSorted()).toEqual(declared.toSorted());
  });
});
