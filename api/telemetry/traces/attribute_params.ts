// The query parameters attributes.<path>, which filter traces by the attributes of their spans. The
// query holds them by name under one declared parameter; see families of query_params.ts.
import { z } from 'zod';
import { type AttributeFilter, parseAttributePath } from '../../../sql/attribute_path.ts';
import { splitValues } from './split_values.ts';

const FILTERS_MAX = 5;
const VALUES_MAX = 50;

const given = z.record(z.string(), z.union([z.string(), z.array(z.string())]), {
  error: 'must name an attribute in place of <path>, such as attributes.region',
});

/** Name under which the query holds the filters by attributes. */
export const ATTRIBUTES = 'attributes.<path>';

export const attributesParam = z
  .unknown()
  .transform((query, ctx): AttributeFilter[] => {
    const fail = (message: string): never[] => {
      ctx.addIssue({ code: 'custom', message });
      return [];
    };
    const parsed = given.safeParse(query);
    if (!parsed.success) return fail(parsed.error.issues[0]?.message ?? '');
    const fields = Object.entries(parsed.data);
    if (fields.length > FILTERS_MAX) return fail(`must be at most ${FILTERS_MAX} attributes`);
    return fields.flatMap(([field, value]) => {
      const path = parseAttributePath(field);
      if (!path.ok) return fail(`${field} ${path.message}`);
      const texts = [value].flat().flatMap(splitValues);
      if (texts.length > VALUES_MAX) return fail(`${field} must have at most ${VALUES_MAX} values`);
      return texts.length === 0
        ? []
        : [{ path: path.path, op: 'in' as const, values: [...texts, ...numbersIn(texts)] }];
    });
  })
  .meta({
    type: 'array',
    items: { type: 'string' },
    description: `Traces with a span whose attribute at this path has any of these values, for example \`attributes.region=eu\`. The path names keys, separated by dots. At most ${FILTERS_MAX} attributes, which must all match on one span`,
  });

/** Returns the numbers among texts: 7 also matches the attribute 7.0. */
const numbersIn = (texts: readonly string[]): number[] =>
  texts
    .filter((text) => text.trim() !== '')
    .map(Number)
    .filter(Number.isFinite);
