// Checks names in strings: arguments that name an aggregate function, and arguments that name a
// type, which may be that of an aggregate function's state. Pure: takes a node of the parser's
// tree, returns the problem or null.
import type { Node } from './check.ts';
import { isAllowedFunction, whyLeftOut } from './functions.ts';

/**
 * Functions whose first argument names an aggregate function with its parameters:
 * arrayReduce('quantile(0.5)', x).
 */
const TAKE_FUNCTION = new Set(['arrayreduce', 'arrayreduceinranges', 'initializeaggregation']);

/** Functions that take the name of a type, and the argument that names it. */
const TAKE_TYPE: Readonly<Record<string, 'first' | 'second' | 'last'>> = {
  cast: 'second',
  _cast: 'second',
  accuratecast: 'second',
  accuratecastornull: 'second',
  accuratecastordefault: 'second',
  reinterpret: 'second',
  dynamicelement: 'second',
  variantelement: 'second',
  defaultvalueoftypename: 'first',
  jsonextract: 'last',
  jsonextractcaseinsensitive: 'last',
};

/** A string as the parser prints it, which begins with a name. */
const NAMED = /^'(\w+)['(]/;
const TEXT = /^'/;
const STATE = /aggregatefunction/gi;
const NAMED_STATE = /^aggregatefunction\(\s*(?:\d+\s*,\s*)?(\w+)\s*[(,)]/i;

/**
 * Returns why a call may not run because of a name in one of its arguments, or null.
 *
 * @param name name of the function
 * @param call node of the call
 */
export function problemOfNames(name: string, call: Node): string | null {
  const args = call.children.find(({ kind }) => kind === 'ExpressionList')?.children ?? [];
  const lower = name.toLowerCase();
  if (TAKE_FUNCTION.has(lower)) {
    const named = args[0]?.kind === 'Literal' ? NAMED.exec(args[0].rest)?.[1] : undefined;
    if (named === undefined)
      return `the first argument of ${name} must be the name of an aggregate function, written as a string`;
    return problemOf(named);
  }
  const place = TAKE_TYPE[lower];
  const type = place === undefined ? undefined : args[place === 'first' ? 0 : place === 'second' ? 1 : args.length - 1];
  if (type === undefined) return null;
  if (type.kind !== 'Literal' || !TEXT.test(type.rest)) return `the type in ${name} must be written as a string`;
  for (const { index } of type.rest.matchAll(STATE)) {
    const named = NAMED_STATE.exec(type.rest.slice(index))?.[1];
    const problem =
      named === undefined ? `the type in ${name} must name its aggregate function without quotes` : problemOf(named);
    if (problem !== null) return problem;
  }
  return null;
}

const problemOf = (named: string): string | null =>
  isAllowedFunction(named) ? null : `function ${named}: ${whyLeftOut(named)}`;
