// Paths whose answers follow the contract of another vendor's API, and the codes of their errors.
import { expect } from 'vitest';

/** Paths that answer errors in OpenAI's format. */
export const GATEWAY = /^\/v1\/(chat\/completions|responses|embeddings|models(\/\{model\})?)$/;
/** Paths that answer errors in Anthropic's format. */
export const ANTHROPIC = /^(?:\/anthropic)?\/v1\/messages(?:\/count_tokens)?$|^\/anthropic\/v1\/models/;
/** Paths for clients of other vendors; what is not supported there is 501. */
export const COMPATIBLE = /^\/(?:api\/public|langsmith)\//;
export const OTLP = /^\/v1\/(otlp\/v1\/)?(traces|logs|metrics)$/;
/** Returns the code of an error after checking the error's shape; null where the shape has none. */
export function codeOf(path: string, body: Record<string, unknown>): unknown {
  if (ANTHROPIC.test(path)) {
    expect(Object.keys(body).sort()).toEqual(['error', 'request_id', 'type']);
    return null;
  }
  const error = GATEWAY.test(path) ? (body['error'] as Record<string, unknown>) : body;
  expect(Object.keys(error).sort()).toEqual(
    GATEWAY.test(path) ? ['code', 'message', 'param', 'type'] : ['code', 'detail', 'request_id'],
  );
  return error['code'];
}
