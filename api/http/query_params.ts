// Checks the names of query parameters against the route's query schema. An undeclared parameter is
// rejected with the nearest declared one, because a misspelt filter would otherwise be ignored and
// everything listed. Takes a schema and the parsed query; throws for the first invalid name. The
// schema itself checks values.
//
// A parameter that is declared as `attributes.<path>` stands for a family: every name that begins
// with `attributes.` and goes on with a path. familiesFolded() gathers its members under the
// declared name, as a record by their own names.
import { z } from 'zod';
import { ApiError } from './errors.ts';

/** Maximum characters of an unknown name that are compared and shown. */
const NAME_CHARS_MAX = 64;

interface Declared {
  names: readonly string[];
  /** Parameters that may be repeated. */
  lists: ReadonlySet<string>;
  /** Families by the beginning of their members' names. */
  families: ReadonlyMap<string, string>;
}

/** The part of a family's name that stands for the rest of a member's name. */
const ANY = /<[a-z]+>$/;
/** Rests of names that belong to no member: they would look like the declaration itself. */
const NO_REST = /[<>]/;

const known = new WeakMap<z.ZodType, Declared>();

/**
 * Checks the names in a query against the schema that declares them.
 * @throws ApiError invalid_request for an undeclared parameter, and for a repeated one that is not
 * a list
 */
export function checkQueryNames(schema: z.ZodType, query: Readonly<Record<string, unknown>>): void {
  for (const name in query) {
    const { names, lists, families } = declaredIn(schema);
    if (familyOf(name, families) !== null) continue;
    if (!names.includes(name)) throw new ApiError('invalid_request', unknownParameter(name, names));
    if (Array.isArray(query[name]) && !lists.has(name))
      throw new ApiError('invalid_request', `${name}: may be given only once`);
  }
}

/** Returns the query with the members of each family gathered under the family's declared name. */
export function familiesFolded(schema: z.ZodType, query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { families } = declaredIn(schema);
  if (families.size === 0) return query;
  const folded: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(query)) {
    const family = familyOf(name, families);
    if (family === null) folded[name] = value;
    else folded[family] = { ...(folded[family] as object | undefined), [name]: value };
  }
  return folded;
}

function familyOf(name: string, families: Declared['families']): string | null {
  for (const [beginning, family] of families) {
    const rest = name.slice(beginning.length);
    if (name.startsWith(beginning) && rest !== '' && !NO_REST.test(rest)) return family;
  }
  return null;
}

/** Returns the error detail for an undeclared parameter. */
export function unknownParameter(name: string, names: readonly string[]): string {
  const shown = name.slice(0, NAME_CHARS_MAX).toWellFormed();
  const said = `unknown query parameter ${shown}`;
  if (names.length === 0) return `${said}; this endpoint accepts none`;
  const asked = comparable(shown);
  const [nearest] = [...names, ...membersLike(shown, names)]
    .map((candidate) => ({ candidate, distance: editDistance(asked, comparable(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  if (nearest !== undefined && nearest.distance <= Math.max(1, asked.length / 2))
    return `${said}; did you mean ${nearest.candidate}?`;
  return `${said}; this endpoint accepts ${names.join(', ')}`;
}

/** Returns the members of families that a name may have meant: attributes.region for attribute.region. */
function membersLike(name: string, names: readonly string[]): string[] {
  const dot = name.indexOf('.');
  const rest = name.slice(dot + 1);
  if (dot < 0 || rest === '' || NO_REST.test(rest)) return [];
  return names.filter((candidate) => ANY.test(candidate)).map((family) => family.replace(ANY, rest));
}

/**
 * Returns a name without case, underscores and brackets: agentId and agent-id equal agent_id,
 * tags[] equals tags.
 */
const comparable = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Returns the Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function declaredIn(schema: z.ZodType): Declared {
  const before = known.get(schema);
  if (before !== undefined) return before;
  const fields = Object.entries(fieldsOf(schema));
  const declared = {
    names: fields.map(([name]) => name),
    lists: new Set(fields.filter(([, field]) => isList(field)).map(([name]) => name)),
    families: new Map(
      fields.filter(([name]) => ANY.test(name)).map(([name]): [string, string] => [name.replace(ANY, ''), name]),
    ),
  };
  known.set(schema, declared);
  return declared;
}

/** @throws Error for a schema that is not an object, which no route may declare for its query */
function fieldsOf(schema: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> {
  if (schema instanceof z.ZodObject) return schema.shape;
  if (schema instanceof z.ZodPipe) return fieldsOf(schema.def.in);
  throw new Error('the query of a route must be declared as an object');
}

function isList(field: z.core.$ZodType): boolean {
  if (field instanceof z.ZodArray) return true;
  if (
    field instanceof z.ZodOptional ||
    field instanceof z.ZodDefault ||
    field instanceof z.ZodPrefault ||
    field instanceof z.ZodNullable
  )
    return isList(field.def.innerType);
  if (!(field instanceof z.ZodPipe)) return false;
  // A preprocessed parameter accepts whatever its transformation turns into a list.
  return isList(field.def.in instanceof z.ZodTransform ? field.def.out : field.def.in);
}
