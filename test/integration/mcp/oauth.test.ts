// Sign-in of a person by a real MCP client: the client finds the OIDC provider by the 401 of /mcp,
// registers itself there, sends the person through the provider's pages, and calls tools with the
// token that it gets for /mcp.
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as OldUnauthorized } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HeaderProxy, startHeaderProxy } from '../../support/header_proxy.ts';
import { startOidc, type TestOidc } from '../../support/oidc.ts';
import { TestService } from '../a_service.ts';
import { ORG, type TestApi } from '../api/an_api.ts';

const OWNER = 'user_local';
const REDIRECT = 'http://127.0.0.1:9/mcp-callback';
const AUDIENCE = 'https://api.example';
const INFO = { name: 'test', version: '1.0.0' };

let oidc: TestOidc;
let service: TestService;
let api: TestApi;
/** The address of the service for its clients: a proxy, as before a service that does not end TLS. */
let front: HeaderProxy;

beforeAll(async () => {
  oidc = await startOidc('RS256');
  front = await startHeaderProxy(() => api.port, { host: undefined });
  service = await TestService.start({
    api: {
      provider: { jwksUrl: oidc.jwksUrl, issuer: oidc.issuer, audience: AUDIENCE },
      publicUrl: front.url,
    },
  });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await front.close();
  await service.close();
  await oidc.stop();
});

type Stored<Name extends 'clientInformation' | 'tokens'> = Awaited<ReturnType<OAuthClientProvider[Name]>>;

/** Keeps the state of a client on the person's machine: its registration, the verifier and the tokens. */
class Kept implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = {
    client_name: 'A coding agent',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  /** Address to which the client sent the person; null before that. */
  sentTo: URL | null = null;
  #registered: Stored<'clientInformation'>;
  #tokens: Stored<'tokens'>;
  #verifier = '';
  #discovered: OAuthDiscoveryState | undefined;

  clientInformation(): Stored<'clientInformation'> {
    return this.#registered;
  }
  saveClientInformation(registered: NonNullable<Stored<'clientInformation'>>): void {
    this.#registered = registered;
  }
  tokens(): Stored<'tokens'> {
    return this.#tokens;
  }
  saveTokens(tokens: NonNullable<Stored<'tokens'>>): void {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url: URL): void {
    this.sentTo = url;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovered;
  }
  saveDiscoveryState(discovered: OAuthDiscoveryState): void {
    this.#discovered = discovered;
  }
}

interface Connected {
  names: string[];
  said: string;
}

/** Connects with the credential that is kept, and calls a tool. @throws UnauthorizedError without a token */
async function use(kind: 'new' | 'v1', kept: Kept, url: URL): Promise<Connected> {
  if (kind === 'v1') {
    const client = new OldClient(INFO);
    await client.connect(new OldTransport(url, { authProvider: kept }));
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: 'search_traces', arguments: {} });
    await client.close();
    return { names: tools.map(({ name }) => name), said: JSON.stringify(result) };
  }
  const client = new Client(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: kept }));
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: 'search_traces', arguments: {} });
  await client.close();
  return { names: tools.map(({ name }) => name), said: JSON.stringify(result) };
}

/** Ends the sign-in at the address to which the provider sent the person back. */
async function finish(kind: 'new' | 'v1', kept: Kept, url: URL, back: URL): Promise<void> {
  if (kind === 'v1')
    await new OldTransport(url, { authProvider: kept }).finishAuth(back.searchParams.get('code') ?? '');
  else await new StreamableHTTPClientTransport(url, { authProvider: kept }).finishAuth(back.searchParams);
}

describe.each([
  ['@modelcontextprotocol/client', 'new'],
  ['@modelcontextprotocol/sdk', 'v1'],
] as const)('the client of %s', (_, kind) => {
  it('signs a person in at the provider that the 401 leads to, and calls tools as that person', async () => {
    const [kept, url] = [new Kept(), new URL(`${front.url}/mcp?org_id=${ORG}`)];
    const refused = await use(kind, kept, url).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(kind === 'v1' ? OldUnauthorized : UnauthorizedError);
    expect(kept.sentTo?.origin).toBe(oidc.issuer);
    expect(kept.sentTo?.searchParams.get('resource')).toBe(`${front.url}/mcp`);
    await finish(kind, kept, url, new URL(await oidc.walk(kept.sentTo?.href ?? '', OWNER)));
    const { names, said } = await use(kind, kept, url);
    // The owner may use every tool.
    expect(names).toContain('search_traces');
    expect(names).toContain('replay_trace');
    expect(said).not.toContain('"isError":true');
  });
});

const ask = (path: string, token: string): Promise<Response> =>
  fetch(api.url + path, {
    method: path === '/mcp' ? 'POST' : 'GET',
    headers: {
      Authorization: `Bearer ${token}`,
      'X-Org-Id': ORG,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    ...(path === '/mcp' ? { body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }) } : {}),
  });

describe('a token', () => {
  it.each<[string, number, number, () => string]>([
    ['/mcp', 200, 401, () => `${front.url}/mcp`],
    ['the API', 200, 200, () => AUDIENCE],
    ['another service', 401, 401, () => 'https://other.example'],
  ])('for %s is answered %i at /mcp and %i at the other endpoints', async (_, atMcp, atApi, audience) => {
    const token = await oidc.signIn(OWNER, audience());
    expect((await ask('/mcp', token)).status).toBe(atMcp);
    expect((await ask('/v1/traces', token)).status).toBe(atApi);
    // The second time the answer comes from the memory of verified tokens.
    expect((await ask('/mcp', token)).status).toBe(atMcp);
    expect((await ask('/v1/traces', token)).status).toBe(atApi);
  });

  it('that is refused gets a challenge that says so and names the metadata', async () => {
    const { status, headers } = await ask('/mcp', await oidc.signIn(OWNER, 'https://other.example'));
    expect([status, headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer error="invalid_token", resource_metadata="${front.url}/.well-known/oauth-protected-resource/mcp"`,
    ]);
  });
});
