// The events that an endpoint can subscribe to, with their payloads, as /openapi.json documents them.
import { queryOptions } from '@tanstack/react-query';
import { type ApiDocument, documentQuery, type Schema } from '../../client/api_document.ts';

/** A field of a payload. */
interface PayloadField {
  name: string;
  /** Its type in words, such as "text or null". */
  type: string;
  description: string;
}
export interface CatalogEvent {
  name: string;
  /** When the event fires. */
  fires: string;
  fields: readonly PayloadField[];
}

/** The event of POST …/test, to which no endpoint subscribes. */
const TEST_EVENT = 'webhook.test';

/** Describes the read of the catalog. */
export const catalogQuery = queryOptions({ ...documentQuery, select: catalogOf });

/** Returns the events in the order of the document. */
export function catalogOf({ webhooks, components }: Pick<ApiDocument, 'webhooks' | 'components'>): CatalogEvent[] {
  return Object.entries(webhooks)
    .filter(([name]) => name !== TEST_EVENT)
    .map(([name, { post }]) => {
      const schema = resolved(post.requestBody.content['application/json'].schema, components.schemas);
      return {
        name,
        fires: post.summary,
        fields: Object.entries(schema.properties ?? {}).map(([field, given]) => ({
          name: field,
          type: typeWords(resolved(given, components.schemas)),
          description: given.description ?? '',
        })),
      };
    });
}

function resolved(schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (schemas[name] ?? schema);
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  array: 'list',
  object: 'object',
  null: 'null',
};

function typeWords({ type, anyOf, enum: values, const: only, format }: Schema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(', ');
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeWords))].join(' or ');
  if (format === 'date-time') return 'time';
  if (format === 'date') return 'date';
  return [type ?? 'object']
    .flat()
    .map((one) => TYPE_WORDS[one] ?? one)
    .join(' or ');
}
