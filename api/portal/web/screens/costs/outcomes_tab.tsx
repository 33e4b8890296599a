// Outcomes: what each department spent and achieved, and the ROI by the organization's formula or by
// one that is being tried.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { type Answer, apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, exact, money, moneyExact, percent } from '../../text/format.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import numbers from '../../ui/number_table.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import panels from '../home/home.module.css';
import styles from './costs.module.css';
import { costsUrl } from './costs_url.ts';
import { formErrors } from './field_error.ts';
import { OutcomeFormula } from './outcome_formula.tsx';
import { SendOutcomes } from './send_outcomes.tsx';
import { useSettled } from '../../lists/use_settled.ts';

type Department = Answer<'/v1/cost/outcomes'>['data']['departments'][number];

const POLICY_FRESH_MS = 60_000;
/** The formula that is being tried, under the API's name of its parameter. */
const formulaUrl = codec({ value_of_outcomes: text() });

/**
 * Returns the departments; those of before stay while others load.
 * @param formula the formula of the ROI; empty for that of the policy
 */
function useRollup(days: number, formula: string, enabled: boolean) {
  const { org_id } = useOrganization();
  const query = { days, ...(formula === '' ? {} : { value_of_outcomes: formula }) };
  return useQuery({
    ...apiQuery(org_id, '/v1/cost/outcomes', { query }),
    enabled,
    placeholderData: (before) => before,
    select: ({ data }) => data.departments,
  });
}

/** The ROI of the policy's formula says nothing about a formula that is being tried. */
const withoutRoi = (department: Department): Department => ({ ...department, roi: null });

/** The tab. */
export default function OutcomesTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const [{ days }] = useSearchState(costsUrl);
  const [{ value_of_outcomes: tried }, change] = useSearchState(formulaUrl);
  const formula = useSettled(tried.trim());
  const asked = formula === '' ? {} : { value_of_outcomes: formula };
  usePageRequest(`/v1/cost/outcomes?${new URLSearchParams({ days: String(days), ...asked }).toString()}`);
  const rollup = useRollup(days, '', true);
  const trial = useRollup(days, formula, formula !== '');
  const policy = useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/policy', { path: { org_id } }),
    enabled: can('org:read'),
    staleTime: POLICY_FRESH_MS,
    select: ({ data }) => data.value_of_outcomes,
  });
  const { fields, form } = formErrors(trial.error, ['value_of_outcomes']);
  const refused = fields['value_of_outcomes'] ?? null;
  const error = rollup.data === undefined ? rollup.error : form === null ? null : trial.error;
  const departments = formula === '' ? rollup.data : (trial.data ?? rollup.data?.map(withoutRoi));
  const names = [...new Set(departments?.flatMap(({ outcomes }) => Object.keys(outcomes)))].toSorted();
  return (
    <div className={styles.tab}>
      {departments !== undefined && departments.length > 0 && (
        <OutcomeFormula
          saved={policy.data ?? null}
          tried={tried}
          refused={refused}
          names={names}
          onTry={(value) => {
            change({ value_of_outcomes: value }, { replace: true });
          }}
        />
      )}
      <section className={panels.section}>
        <h2>Departments</h2>
        {error !== null && (
          <ErrorPanel
            error={error}
            what="the outcomes"
            onRetry={() => {
              void rollup.refetch();
              if (formula !== '') void trial.refetch();
            }}
          />
        )}
        {departments === undefined && error === null && <Skeleton rows={6} height={20} />}
        {departments?.length === 0 && <SendOutcomes days={days} isEmpty />}
        {departments !== undefined && departments.length > 0 && (
          <Departments
            departments={departments}
            isStale={rollup.isPlaceholderData || trial.isFetching || tried.trim() !== formula}
            hasFormula={formula !== '' || (policy.data ?? null) !== null}
          />
        )}
      </section>
      {departments !== undefined && departments.length > 0 && names.length === 0 && (
        <SendOutcomes days={days} isEmpty={false} />
      )}
    </div>
  );
}

interface DepartmentsProps {
  departments: readonly Department[];
  isStale: boolean;
  hasFormula: boolean;
}

function Departments({ departments, isStale, hasFormula }: DepartmentsProps): ReactElement {
  return (
    <div
      className={numbers.scroll}
      role="region"
      aria-label="Departments"
      aria-busy={isStale || undefined}
      tabIndex={0}
    >
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Department</th>
            <th scope="col">Cost</th>
            <th scope="col">Outcomes</th>
            <th scope="col">Cost each</th>
            <th scope="col">ROI</th>
          </tr>
        </thead>
        <tbody>
          {departments.map(({ department, cost_usd, outcomes, cost_per_outcome_usd, roi }) => (
            <tr key={department}>
              <th scope="row" className={styles.name}>
                {department}
              </th>
              <td title={moneyExact(cost_usd)}>{money(cost_usd)}</td>
              <td className={styles.name}>
                {Object.entries(outcomes)
                  .map(([name, sum]) => `${count(sum)} ${name}`)
                  .join(', ') || '–'}
              </td>
              <td title={moneyExact(cost_per_outcome_usd)}>{money(cost_per_outcome_usd)}</td>
              <td
                title={roi === null ? whyNoRoi(hasFormula, cost_usd) : exact(roi)}
                className={roi !== null && roi < 0 ? styles.bad : undefined}
              >
                {percent(roi)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const whyNoRoi = (hasFormula: boolean, cost_usd: number): string =>
  cost_usd === 0
    ? 'A department without cost has no ROI'
    : hasFormula
      ? 'The formula has no value for these outcomes'
      : 'The ROI needs a formula for the value of outcomes';
