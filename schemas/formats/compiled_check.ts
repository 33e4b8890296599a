// Compiles a zod shape into one function, so that checking an event of the right shape costs a
// fraction of zod's time. It takes a shape and returns a predicate on parsed JSON.
//
// The shape is written once: zod derives a JSON Schema from it, and ajv compiles that. Rules that
// JSON Schema cannot express (refinements, rules over several fields) stay zod's own functions,
// which the compiled code calls. The predicate is sound but need not be complete: a value that it
// accepts is accepted by the shape, and a value that it rejects is left to the shape to decide.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';

/** Keyword of the derived schemas: the index of zod's own checks of a value. */
const CHECKS = 'x-checks';

interface Check {
  _zod: { check: (payload: never) => unknown };
}

/** Returns a predicate that is true only for values that the shape accepts unchanged. */
export function compileCheck(shape: z.ZodType): (value: unknown) => boolean {
  const ajv = new Ajv2020({
    strict: false,
    // Of numbers, JSON.parse makes Infinity of 1e999, which no shape accepts.
    strictNumbers: true,
    // As in zod, a pattern has no flag.
    unicodeRegExp: false,
  });
  const checks: Check[][] = [];
  ajv.addKeyword({
    keyword: CHECKS,
    compile: (index: number) => {
      const own = checks[index] ?? [];
      return (value: unknown) => own.every((check) => passes(check, value));
    },
  });
  const derived = z.toJSONSchema(shape, {
    io: 'input',
    unrepresentable: 'throw',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      if (def.type === 'tuple') Object.assign(jsonSchema, { items: false, minItems: def.items.length });
      const own = (def.checks ?? []).filter((check) => check._zod.def.check === 'custom');
      // The schema is returned as a copy by way of JSON, so it names the functions by index.
      if (own.length > 0) Object.assign(jsonSchema, { [CHECKS]: checks.push(own) - 1 });
    },
  });
  return ajv.compile(derived);
}

/**
 * Runs a check of zod. The compiled code may call it on a value of a type that the check does not
 * expect, which is rejected beside it.
 */
function passes(check: Check, value: unknown): boolean {
  const payload = { value, issues: [] };
  try {
    // A promise, which an asynchronous check returns, decides nothing here.
    return check._zod.check(payload as never) === undefined && payload.issues.length === 0;
  } catch {
    return false;
  }
}
