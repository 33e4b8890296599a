// Marks deprecations in the OpenAPI document: `deprecated` and `x-sunset` on the operation,
// parameter or property itself, and a line in the operation's description. Takes a documented
// operation and its deprecations. A deprecation of a name that the operation does not have stops
// the start.
import { checkOverlap, type Deprecated } from '../http/deprecation.ts';
import type { Json, JsonObject } from './document.ts';

/** Maximum length of a chain of references, which ends circles. */
const REFS_MAX = 10;
const NAMES: Record<Deprecated['part'], string> = {
  query: 'query parameter',
  body: 'request field',
  response: 'field of the response',
  route: '',
};

/**
 * Marks the deprecated parts of an operation. A property of a shared schema is marked wherever that
 * schema is used.
 * @throws Error naming the operation whose declaration is wrong
 */
export function markDeprecated(operation: JsonObject, deprecated: readonly Deprecated[], components: JsonObject): void {
  const id = textOf(operation['operationId']);
  for (const one of deprecated) {
    checkOverlap(id, one);
    const found = targetOf(operation, one, components);
    if (found === null) throw new Error(`${id}: the deprecated ${one.part} ${one.field} does not exist`);
    found['deprecated'] = true;
    found['x-sunset'] = one.sunset;
  }
  const lines = deprecated.map(({ part, field, sunset, instead }) => {
    const what = part === 'route' ? 'This endpoint' : `The ${NAMES[part]} \`${field}\``;
    return `**Deprecated.** ${what} will be removed on ${sunset.slice(0, 10)}. Use ${instead}.`;
  });
  operation['description'] = [textOf(operation['description']), ...lines].filter((line) => line !== '').join('\n\n');
}

function targetOf(operation: JsonObject, { part, field }: Deprecated, components: JsonObject): JsonObject | null {
  if (part === 'route') return operation;
  if (part === 'query') {
    const parameters = operation['parameters'] as JsonObject[];
    return parameters.find((parameter) => parameter['in'] === 'query' && parameter['name'] === field) ?? null;
  }
  const content = part === 'body' ? at(operation, 'requestBody', 'content') : at(firstSuccess(operation), 'content');
  for (const media of Object.values(content ?? {})) {
    const schema = at(media, 'schema');
    const whole = schema === null ? null : propertyOf(schema, field.split('.'), components);
    if (whole !== null) return whole;
    const data =
      part === 'response' && schema !== null ? propertyOf(schema, ['data', ...field.split('.')], components) : null;
    if (data !== null) return data;
  }
  return null;
}

function firstSuccess(operation: JsonObject): Json {
  const responses = (operation['responses'] ?? {}) as JsonObject;
  return responses[Object.keys(responses).find((status) => status.startsWith('2')) ?? ''] ?? null;
}

/**
 * Returns the property at a path of names. `[]` steps into the items of a list, as a plain name
 * also does.
 */
function propertyOf(schema: JsonObject, [name, ...rest]: readonly string[], components: JsonObject): JsonObject | null {
  const own = followed(schema, components);
  if (own === null || name === undefined) return own;
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    for (const option of (own[key] ?? []) as JsonObject[]) {
      const found = propertyOf(option, [name, ...rest], components);
      if (found !== null) return found;
    }
  }
  const items = at(own, 'items');
  if (items !== null) return propertyOf(items, name === '[]' ? rest : [name, ...rest], components);
  const property = at(own, 'properties', name);
  return property === null ? null : rest.length === 0 ? property : propertyOf(property, rest, components);
}

function followed(schema: JsonObject, components: JsonObject): JsonObject | null {
  let found: JsonObject | null = schema;
  for (let steps = 0; found !== null && steps < REFS_MAX; steps++) {
    const ref: Json | undefined = found['$ref'];
    if (typeof ref !== 'string') return found;
    found = at(components, ref.replace('#/components/schemas/', ''));
  }
  return null;
}

function at(value: Json | undefined, ...path: readonly string[]): JsonObject | null {
  let found: Json | undefined = value;
  for (const name of path) found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return isObject(found) ? found : null;
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
