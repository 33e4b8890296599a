// An OIDC provider for tests: the real `oidc-provider` on a free port. Users sign in through its
// own pages and get a JWT access token for the service, as with any provider that an operator
// configures.
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type JWK } from 'oidc-provider';
import { z } from 'zod';

/** The client of the service at the provider. */
export const CLIENT = { client_id: 'portal', client_secret: 'portal-secret-of-the-tests' };
/** No process listens there: signIn() reads the code from the redirect. */
const REDIRECT_URI = 'http://127.0.0.1:9/callback';
const PRODUCT_SCOPE = 'api';
/** Maximum number of pages and redirects in a sign-in, up to the code. */
const STEPS_MAX = 12;
const TOKEN_SECONDS = 3600;

export type OidcAlg = 'RS256' | 'ES256' | 'EdDSA';

export interface TestOidc {
  /** The value of the `iss` claim. */
  issuer: string;
  /** The address of the signing keys, as in the discovery document. */
  jwksUrl: string;
  /**
   * Signs a user in with the code flow. `audience` is the resource for which the token is
   * requested.
   */
  signIn(login: string, audience: string): Promise<string>;
  /** Returns a token of the client itself, without a user. */
  clientToken(audience: string): Promise<string>;
  /** Stops the provider. start() restarts it on the same port. */
  stop(): Promise<void>;
  /**
   * Follows the login of a browser at the provider from the address to which the service sends it.
   * @returns the address to which the provider sends the browser back
   */
  walk(address: string, login: string): Promise<string>;
  /** Starts the provider with a new key and without its earlier keys. */
  start(alg: OidcAlg): Promise<void>;
}

/**
 * Starts a provider with one new key. The caller must stop() it.
 * @param redirectUris addresses to which it may send browsers back
 */
export async function startOidc(alg: OidcAlg, redirectUris: readonly string[] = []): Promise<TestOidc> {
  let server = await listening(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  serve(server, providerOf(issuer, alg, await newKey(alg), redirectUris));
  const discovery = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const { jwks_uri } = z.object({ jwks_uri: z.string() }).parse(discovery);
  return {
    issuer,
    jwksUrl: jwks_uri,
    signIn: (login, audience) => signIn(issuer, login, audience),
    clientToken: (audience) =>
      tokenFor(issuer, { grant_type: 'client_credentials', resource: audience, scope: PRODUCT_SCOPE }),
    walk: (address, login) => walk(issuer, address, login),
    stop: () => closed(server),
    async start(nextAlg) {
      const provider = providerOf(issuer, nextAlg, await newKey(nextAlg), redirectUris);
      server = await listening(port);
      serve(server, provider);
    },
  };
}

async function newKey(alg: OidcAlg): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomBytes(6).toString('hex'), alg, use: 'sig' };
}

function providerOf(issuer: string, alg: OidcAlg, key: JWK, redirectUris: readonly string[]): Provider {
  return new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    clients: [
      {
        ...CLIENT,
        redirect_uris: [REDIRECT_URI, ...redirectUris],
        grant_types: ['authorization_code', 'client_credentials'],
        response_types: ['code'],
        id_token_signed_response_alg: alg,
      },
    ],
    // Set explicitly, because the provider prints a warning for each default that it uses.
    ttl: {
      AccessToken: TOKEN_SECONDS,
      ClientCredentials: TOKEN_SECONDS,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    scopes: ['openid', 'email', PRODUCT_SCOPE],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, email: `${sub}@Example.com`, email_verified: true }),
    }),
    extraTokenClaims: (_, token) =>
      'accountId' in token ? { email: `${token.accountId}@Example.com`, email_verified: true } : undefined,
    enabledJWA: { idTokenSigningAlgValues: [alg] },
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      // Clients such as those of MCP register themselves.
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, audience) => ({
          scope: PRODUCT_SCOPE,
          audience,
          accessTokenTTL: TOKEN_SECONDS,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg } },
        }),
      },
    },
  });
}

function serve(server: Server, provider: Provider): void {
  const answer = provider.callback();
  server.on('request', (req, res) => void answer(req, res));
}

/** Signs in with the code flow and exchanges the code. */
async function signIn(issuer: string, login: string, audience: string): Promise<string> {
  const verifier = randomBytes(32).toString('base64url');
  const query = new URLSearchParams({
    client_id: CLIENT.client_id,
    response_type: 'code',
    redirect_uri: REDIRECT_URI,
    scope: `openid ${PRODUCT_SCOPE}`,
    resource: audience,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const back = await walk(issuer, `${issuer}/auth?${query.toString()}`, login);
  const code = new URL(back).searchParams.get('code');
  if (code === null) throw new Error(`the sign-in was refused: ${back}`);
  return tokenFor(issuer, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: verifier,
    resource: audience,
  });
}

/**
 * Follows the provider's pages and keeps its cookies, as a browser does, until a redirect leads back
 * to the client.
 */
async function walk(issuer: string, address: string, login: string): Promise<string> {
  const jar = new Map<string, string>();
  const visit = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { Cookie: cookie },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const set of response.headers.getSetCookie()) {
      const [pair = ''] = set.split(';');
      const at = pair.indexOf('=');
      jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  };
  let url = address;
  for (let step = 0; step < STEPS_MAX; step++) {
    let response = await visit(url);
    if (response.status === 200) {
      // A prompt page: the first asks for the user's login, the next for consent to the client.
      const prompt = /name="prompt" value="(\w+)"/.exec(await response.text())?.[1] ?? '';
      response = await visit(url, { prompt, ...(prompt === 'login' ? { login, password: 'any' } : {}) });
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`the sign-in stopped with ${response.status}: ${await response.text()}`);
    url = new URL(location, issuer).href;
    if (!url.startsWith(`${issuer}/`)) return url;
  }
  throw new Error(`the sign-in did not end within ${STEPS_MAX} steps`);
}

async function tokenFor(issuer: string, form: Record<string, string>): Promise<string> {
  const basic = Buffer.from(`${CLIENT.client_id}:${CLIENT.client_secret}`).toString('base64');
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${basic}` },
    body: new URLSearchParams(form),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the provider gave no token: ${text}`);
  return z.object({ access_token: z.string() }).parse(JSON.parse(text)).access_token;
}

function listening(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      resolve(server);
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
