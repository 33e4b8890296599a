// The description of the API at run time, for what only the document names: the payloads of events and the
// actions of the audit log. It changes with the version of the service only, and is read when a screen
// asks for it.
import { queryOptions } from '@tanstack/react-query';
import { errorOfAnswer, errorOfThrown } from './error.ts';

/** A JSON Schema, as far as screens read it. */
export interface Schema {
  type?: string | string[];
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  description?: string;
  $ref?: string;
  properties?: Record<string, Schema>;
}
export interface ApiDocument {
  paths: Record<string, Record<string, { 'x-audit'?: string | null }>>;
  webhooks: Record<
    string,
    { post: { summary: string; requestBody: { content: { 'application/json': { schema: Schema } } } } }
  >;
  components: { schemas: Record<string, Schema> };
}

/** Describes the read of the document. */
export const documentQuery = queryOptions({
  queryKey: [null, '/openapi.json'],
  queryFn: ({ signal }) => readDocument(signal),
  staleTime: Infinity,
});

async function readDocument(signal: AbortSignal): Promise<ApiDocument> {
  let answer;
  try {
    answer = await fetch('/openapi.json', { signal });
  } catch (thrown) {
    throw errorOfThrown(thrown);
  }
  if (!answer.ok) throw errorOfAnswer(answer.status, await answer.json().catch(() => null), answer.headers);
  return (await answer.json()) as ApiDocument;
}
