// Route of the metadata by which MCP clients find the OIDC provider (RFC 9728).
import { z } from 'zod';
import { ApiError } from '../http/errors.ts';
import { definePublicRoute, type Route } from '../http/route.ts';
import { MCP_PATH, METADATA_PATH, originOf } from './address.ts';

const metadata = z.object({
  resource: z.string().describe('Address of the MCP server'),
  authorization_servers: z.array(z.string()).describe('The OIDC provider'),
  scopes_supported: z.array(z.string()).describe('Scopes that a client asks the provider for'),
  bearer_methods_supported: z.array(z.literal('header')),
  resource_name: z.string(),
});

/**
 * @param issuer the OIDC provider; undefined where none is configured
 * @param publicUrl the configured origin of the service
 */
export function mcpRoutes(issuer: string | undefined, publicUrl: string | undefined): Route[] {
  return [
    definePublicRoute({
      method: 'get',
      path: METADATA_PATH,
      operation_id: 'getMcpMetadata',
      summary: 'Get the metadata of the MCP server',
      description:
        'Names the OIDC provider whose tokens `/mcp` accepts, as RFC 9728 describes. Without a provider it is 404 `not_found`: `/mcp` then takes API keys.',
      tag: 'MCP',
      bare: true,
      any_query: true,
      response: metadata,
      errors: ['not_found'],
      handler: ({ req }) => {
        if (issuer === undefined) throw new ApiError('not_found', 'No OIDC provider is configured.');
        return {
          bare: {
            resource: `${originOf(req, publicUrl)}${MCP_PATH}`,
            authorization_servers: [issuer],
            // The portal asks for the same two: the person's id, and the address that invites name.
            scopes_supported: ['openid', 'email'],
            bearer_methods_supported: ['header' as const],
            resource_name: 'Millrace',
          },
        };
      },
    }),
  ];
}
