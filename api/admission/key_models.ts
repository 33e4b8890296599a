// The check of the models that an API key may name: rejects a call of, or an event about, any other
// model. Patterns are compiled once for each set of limits.
import { globOf } from '../../ops/platform/llm/routes.ts';
import type { KeyLimits } from '../../schemas/records/api_key.ts';
import type { BudgetCheck } from './budget/check.ts';
import type { RequestFacts } from './check.ts';
import { ADMIT, reject, type Settled } from './decision.ts';

/** Maximum characters of a model and of the patterns in an error. */
const SHOWN_MAX = 200;

const compiled = new WeakMap<KeyLimits, readonly ((model: string) => boolean)[]>();

function patternsOf(limits: KeyLimits): readonly ((model: string) => boolean)[] {
  let patterns = compiled.get(limits);
  if (patterns === undefined) compiled.set(limits, (patterns = (limits.models ?? []).map(globOf)));
  return patterns;
}

/** Admits events whose models the key of the request may name. */
export function checkModels(budgets: Pick<BudgetCheck, 'usesOf'>, request: RequestFacts): Settled {
  const limits = request.key?.limits ?? null;
  if (limits?.models == null) return ADMIT;
  const patterns = patternsOf(limits);
  for (const { models } of budgets.usesOf(request))
    for (const model of models) {
      if (patterns.some((matches) => matches(model))) continue;
      const allowed = limits.models.join(', ').slice(0, SHOWN_MAX);
      return reject(
        'forbidden',
        `The API key may not use the model ${model.slice(0, SHOWN_MAX)}; it may use: ${allowed}`,
        null,
      );
    }
  return ADMIT;
}
