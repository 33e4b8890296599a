// Computes what each department cost and achieved, and the value of that by the organization's own
// formula.
import { dayOf } from '../../../pipeline/domain/time/days.ts';
import { evaluate, type Formula, parseFormula } from '../../../pipeline/domain/stats/formula.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { addOutcomes, NO_OUTCOMES, type Outcomes } from '../../../pipeline/domain/pricing/outcomes.ts';
import { readOutcomes } from '../../../sql/stores/costs.ts';
import { ApiError } from '../../http/errors.ts';
import { type CostDeps, labelOf } from './costs.ts';
import type { OutcomeRollup, OutcomesQuery } from './schema.ts';

interface Department {
  cost_pico_usd: bigint;
  outcomes: Outcomes;
}

/**
 * Returns the departments sorted by name; costs without a department are in none of them.
 *
 * @throws ApiError invalid_request if the formula of the query cannot be read
 */
export async function readRollup(
  { clickhouse, agentMetadata, policyOf, now }: Omit<CostDeps, 'settings'>,
  org_id: string,
  { days, value_of_outcomes }: OutcomesQuery,
  signal: AbortSignal,
): Promise<OutcomeRollup> {
  const text = value_of_outcomes ?? policyOf(org_id).value_of_outcomes;
  const parsed = text === null ? null : parseFormula(text);
  if (value_of_outcomes !== undefined && parsed?.ok === false)
    throw new ApiError('invalid_request', `value_of_outcomes: ${parsed.message}`);
  const until = dayOf(now()) + 1;
  const rows = await readOutcomes(clickhouse, { org_id, from: until - days, until }, { signal });
  const departments = new Map<string, Department>();
  for (const row of rows) {
    const name = row.department === '' ? labelOf(agentMetadata(org_id, row.agent), 'department') : row.department;
    if (name === '') continue;
    const known = departments.get(name) ?? { cost_pico_usd: 0n, outcomes: NO_OUTCOMES };
    departments.set(name, {
      cost_pico_usd: known.cost_pico_usd + usdToPico(row.cost_usd),
      outcomes: addOutcomes(known.outcomes, sumsOf(row)),
    });
  }
  const formula = parsed?.ok === true ? parsed.formula : null;
  return {
    departments: [...departments]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([department, sums]) => itemOf(department, sums, formula)),
  };
}

function sumsOf({ all_names, names, amounts }: { all_names: string[]; names: string[]; amounts: string[] }): Outcomes {
  const sums = new Map(all_names.map((name) => [name, 0n]));
  for (const [index, name] of names.entries()) sums.set(name, usdToPico(amounts[index] ?? '0'));
  return sums;
}

function itemOf(
  department: string,
  { cost_pico_usd, outcomes }: Department,
  formula: Formula | null,
): OutcomeRollup['departments'][number] {
  const cost_usd = picoToUsd(cost_pico_usd);
  const amounts = [...outcomes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, sum]): [string, number] => [name, picoToUsd(sum)]);
  const total = picoToUsd([...outcomes.values()].reduce((all, sum) => all + sum, 0n));
  const value = formula === null ? null : evaluate(formula, new Map(amounts));
  return {
    department,
    cost_usd,
    outcomes: Object.fromEntries(amounts),
    cost_per_outcome_usd: total === 0 ? null : cost_usd / total,
    roi: value === null || cost_pico_usd === 0n ? null : (value - cost_usd) / cost_usd,
  };
}
