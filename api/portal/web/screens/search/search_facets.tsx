// Filters beside the hits: models, agents and outcomes with their number of hits, and the cost.
import type { ReactElement } from 'react';
import { count } from '../../text/format.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import { Chip } from '../../ui/chip.tsx';
import { valueCounts } from './hit_groups.ts';
import styles from './search.module.css';
import type { SearchState } from './search_url.ts';
import type { SnippetHit } from './use_search.ts';

interface SearchFacetsProps {
  hits: readonly SnippetHit[];
  state: SearchState;
  onChange: (patch: Partial<SearchState>) => void;
}

const FIELDS = [
  { name: 'outcome', title: 'Outcome' },
  { name: 'model', title: 'Model' },
  { name: 'agent_id', title: 'Agent' },
] as const;
const SHOWN = 12;

/** The filters; the counts are of the hits that are listed. */
export function SearchFacets({ hits, state, onChange }: SearchFacetsProps): ReactElement {
  const isNarrow = useNarrow();
  const filters = (
    <>
      {FIELDS.map(({ name, title }) => {
        const chosen = state[name] ?? '';
        const values = valueCounts(hits.map((hit) => hit[name])).slice(0, SHOWN);
        return values.length === 0 ? null : (
          <section key={name} aria-label={title}>
            <h2 className={styles.facetTitle}>{title}</h2>
            <div className={styles.facetValues}>
              {values.map(({ value, hits: of_value }) => (
                <Chip
                  key={value}
                  pressed={chosen === value}
                  onToggle={() => {
                    onChange({ [name]: chosen === value ? (name === 'outcome' ? null : '') : value });
                  }}
                >
                  {value} {count(of_value)}
                </Chip>
              ))}
            </div>
          </section>
        );
      })}
      <section aria-label="Cost of the span">
        <h2 className={styles.facetTitle}>Cost of the span, USD</h2>
        <div className={styles.costs}>
          <CostField
            label="From"
            value={state.min_cost_usd}
            onChange={(min_cost_usd) => {
              onChange({ min_cost_usd });
            }}
          />
          <CostField
            label="To"
            value={state.max_cost_usd}
            onChange={(max_cost_usd) => {
              onChange({ max_cost_usd });
            }}
          />
        </div>
      </section>
    </>
  );
  return (
    <aside className={styles.facets} aria-label="Filters">
      {isNarrow ? (
        // On a phone the hits come first.
        <details className={styles.folded} open={isFiltered(state) || undefined}>
          <summary>Filters</summary>
          <div className={styles.facets}>{filters}</div>
        </details>
      ) : (
        filters
      )}
    </aside>
  );
}

const isFiltered = ({ outcome, model, agent_id, min_cost_usd, max_cost_usd }: SearchState): boolean =>
  outcome !== null || model !== '' || agent_id !== '' || min_cost_usd !== null || max_cost_usd !== null;

function CostField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: number | null;
  onChange: (value: number | null) => void;
}): ReactElement {
  return (
    <label>
      {label}
      <input
        type="number"
        min={0}
        step="any"
        defaultValue={value ?? ''}
        onChange={(event) => {
          const { valueAsNumber } = event.currentTarget;
          onChange(Number.isNaN(valueAsNumber) || valueAsNumber < 0 ? null : valueAsNumber);
        }}
      />
    </label>
  );
}
