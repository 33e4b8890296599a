// Real MCP clients: the package of revision 2026-07-28, pinned to it or in legacy mode, and the
// package of the revisions before, which most clients still run.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Caller } from '../a_tenant.ts';

export const KINDS = ['2026-07-28', 'legacy', 'v1'] as const;
export type Kind = (typeof KINDS)[number];

export interface Answered {
  isError?: boolean | undefined;
  text: string;
  structured: { items: Record<string, unknown>[]; info: Record<string, unknown>; next: string | null };
}

export interface ToolClient {
  instructions: string;
  tools: () => Promise<{ name: string; [field: string]: unknown }[]>;
  tool: (name: string, args?: Record<string, unknown>) => Promise<Answered>;
  close: () => Promise<void>;
}

const INFO = { name: 'test', version: '1.0.0' };

/** Connects a client as a caller. */
export async function connect(api: { url: string }, caller: Caller, kind: Kind = '2026-07-28'): Promise<ToolClient> {
  const headers = Object.fromEntries(
    Object.entries(caller).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const url = new URL('/mcp', api.url);
  const options = { requestInit: { headers } };
  if (kind === 'v1') {
    const client = new OldClient(INFO);
    await client.connect(new OldTransport(url, options));
    return {
      instructions: client.getInstructions() ?? '',
      tools: async () => (await client.listTools()).tools,
      tool: async (name, args = {}) => answered(await client.callTool({ name, arguments: args })),
      close: () => client.close(),
    };
  }
  const mode = kind === 'legacy' ? ('legacy' as const) : { pin: kind };
  const client = new Client(INFO, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url, options));
  return {
    instructions: client.getInstructions() ?? '',
    tools: async () => (await client.listTools()).tools,
    tool: async (name, args = {}) => answered(await client.callTool({ name, arguments: args })),
    close: () => client.close(),
  };
}

function answered(result: unknown): Answered {
  const { content, structuredContent, isError } = result as {
    content: { text: string }[];
    structuredContent?: Answered['structured'];
    isError?: boolean;
  };
  return {
    isError,
    text: content.map(({ text }) => text).join('\n'),
    structured: structuredContent ?? { items: [], info: {}, next: null },
  };
}
