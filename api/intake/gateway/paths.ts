// The paths of the gateway. Takes a URL and its headers; returns the operation, the API whose shapes
// the caller reads, and the path below an upstream's base URL.
import type { IncomingHttpHeaders } from 'node:http';
import type { GatewayApi } from '../../../ops/platform/llm/routes.ts';
import type { Operation } from './call.ts';

export interface GatewayPath {
  /** Null for a path that is not served but whose caller reads errors in the shape of its API. */
  operation: Operation | 'models' | 'count_tokens' | null;
  api: GatewayApi;
  /** Pattern for metrics and documentation. */
  pattern: string;
  /** Path below an upstream's base URL, with its query. */
  path: string;
}

const GATEWAY_PATH =
  /^(\/anthropic)?\/v1\/(chat\/completions|responses|embeddings|messages(?:\/count_tokens)?|models(?:\/[^/?#]+)?)\/?(?:\?|$)/;
/** Other paths that only clients of Anthropic's API use. */
const ANTHROPIC_PATH = /^(?:\/anthropic(?:\/|\?|$)|\/v1\/messages\/)/;

const OPERATIONS: Readonly<Record<string, Exclude<GatewayPath['operation'], null>>> = {
  'chat/completions': 'chat',
  responses: 'responses',
  embeddings: 'embeddings',
  messages: 'messages',
  'messages/count_tokens': 'count_tokens',
};

/**
 * Returns the gateway's path that a URL names; null for any other. The list of models is Anthropic's
 * where the caller sends anthropic-version.
 */
export function gatewayPathOf(url: string, headers: IncomingHttpHeaders): GatewayPath | null {
  if (!url.startsWith('/v1/') && !url.startsWith('/anthropic')) return null;
  const [, below, name] = GATEWAY_PATH.exec(url) ?? [];
  const operation = name === undefined ? null : (OPERATIONS[name] ?? 'models');
  const isAnthropic =
    below !== undefined ||
    operation === 'messages' ||
    operation === 'count_tokens' ||
    (operation === 'models' && headers['anthropic-version'] !== undefined);
  if (name === undefined || (below !== undefined && !isOfAnthropic(operation)))
    return ANTHROPIC_PATH.test(url) ? { operation: null, api: 'anthropic', pattern: '/anthropic/*', path: '' } : null;
  const query = url.indexOf('?');
  const pattern = name.startsWith('models/') ? '/v1/models/{model}' : `/v1/${name}`;
  return {
    operation,
    api: isAnthropic ? 'anthropic' : 'openai',
    pattern: `${below ?? ''}${pattern}`,
    path: `/${name}${query < 0 ? '' : url.slice(query)}`,
  };
}

const isOfAnthropic = (operation: GatewayPath['operation']): boolean =>
  operation === 'messages' || operation === 'count_tokens' || operation === 'models';
