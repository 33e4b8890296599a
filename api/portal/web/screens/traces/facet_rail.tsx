// The rail beside the table: the values of each field with counts of the other filters. A click shows
// only a value, Alt with it leaves the value out. It loads after the rows and fails by itself.
import type { MouseEvent, ReactElement } from 'react';
import { useState } from 'react';
import type { Facet, useFacets } from '../../lists/facets.ts';
import { type ListUrl, withFilter } from '../../lists/list_url.ts';
import { addValue, removeValue } from '../../lists/query_text.ts';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { ValueHistogram } from '../../lists/value_histogram.tsx';
import { count, duration, money, tokens } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './facet_rail.module.css';

interface FacetRailProps {
  facets: ReturnType<typeof useFacets>;
  state: ListUrl;
  onChange: ChangeList;
  onClose: () => void;
}

/** Fields in the order of the rail, with their titles. */
const FIELDS: readonly (readonly [Facet['field'], string])[] = [
  ['outcome', 'Outcome'],
  ['duration_ms', 'Duration'],
  ['cost_usd', 'Cost'],
  ['tokens', 'Tokens'],
  ['agent_id', 'Agent'],
  ['root_span_name', 'Name'],
  ['model', 'Model'],
  ['tags', 'Tags'],
  ['verdict', 'Judge verdicts'],
  ['score', 'Scores'],
  ['department', 'Department'],
  ['realm', 'Realm'],
  ['source_format', 'Source'],
  ['sampled', 'Texts'],
];

/** The rail. */
export function FacetRail({ facets, state, onChange, onClose }: FacetRailProps): ReactElement {
  const { data, error, isPending, isPlaceholderData, refetch } = facets;
  const byField = new Map((data?.data ?? []).map((facet) => [facet.field, facet]));
  return (
    <aside
      id="facets"
      className={cx(styles.rail, isPlaceholderData && 'dimmed')}
      aria-label="Filters"
      aria-busy={isPlaceholderData || undefined}
      tabIndex={-1}
    >
      <div className={styles.close}>
        <Button look="quiet" icon="x" hint="Hide filters" onClick={onClose} />
      </div>
      {error !== null && data === undefined && (
        <ErrorPanel
          error={error}
          what="the filters"
          onRetry={() => {
            void refetch();
          }}
        />
      )}
      {isPending && <Skeleton rows={16} height={14} />}
      {data?.meta.partial === true && <p className={styles.note}>Time ran out: some counts are missing or too low.</p>}
      {FIELDS.map(([field, title]) => {
        const facet = byField.get(field);
        return facet === undefined || isBare(facet) ? null : (
          <FacetPart key={field} facet={facet} title={title} state={state} onChange={onChange} />
        );
      })}
      {data !== undefined && (
        <p className={styles.note}>
          Click shows only a value. <kbd>Alt</kbd> with a click leaves it out.
        </p>
      )}
    </aside>
  );
}

/** Returns true for a facet that offers no choice. */
const isBare = ({ values = [], buckets = [] }: Facet): boolean => values.length === 0 && buckets.length < 2;

interface FacetPartProps {
  facet: Facet;
  title: string;
  state: ListUrl;
  onChange: ChangeList;
}

const WORDS: Readonly<Record<string, (value: number) => string>> = { duration_ms: duration, cost_usd: money, tokens };

function FacetPart({ facet, title, state, onChange }: FacetPartProps): ReactElement {
  const { field, buckets } = facet;
  const words = WORDS[field];
  const bound = (name: string): number | null => {
    const value = Number(state.filters.get(name)?.[0] ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  };
  return (
    <section className={styles.part} aria-label={title}>
      <h2 className={styles.title}>{title}</h2>
      {buckets !== undefined && words !== undefined ? (
        <ValueHistogram
          label={title}
          buckets={buckets}
          min={bound(`min_${field}`)}
          max={bound(`max_${field}`)}
          words={words}
          onChange={(min, max) => {
            onChange((now) => withBound(withBound(now, `min_${field}`, min), `max_${field}`, max));
          }}
        />
      ) : (
        <Values facet={facet} state={state} onChange={onChange} />
      )}
    </section>
  );
}

const withBound = (state: ListUrl, name: string, value: number | null): ListUrl =>
  withFilter(state, name, value === null ? [] : [String(value)]);

const SHOWN = 8;

function Values({ facet, state, onChange }: Omit<FacetPartProps, 'title'>): ReactElement {
  const [all, setAll] = useState(false);
  const { values = [], approximate, other = 0, without = 0 } = facet;
  const top = Math.max(1, ...values.map(({ traces }) => traces));
  const shown = all ? values : values.slice(0, SHOWN);
  return (
    <>
      <ul className={styles.values}>
        {shown.map((each) => (
          <li key={`${each.judge_id ?? ''}:${each.value}`}>
            <Value facet={facet} each={each} share={each.traces / top} state={state} onChange={onChange} />
          </li>
        ))}
      </ul>
      {values.length > SHOWN && (
        <Button
          look="quiet"
          onClick={() => {
            setAll(!all);
          }}
        >
          {all ? 'Show fewer' : `Show all ${values.length}`}
        </Button>
      )}
      {(approximate || other > 0 || (all && without > 0)) && (
        <p className={styles.note}>
          {[
            other > 0 && `${count(other)} with other values`,
            all && without > 0 && `${count(without)} without a value`,
            approximate && 'Counts are estimated.',
          ]
            .filter((part) => part !== false)
            .join(' · ')}
        </p>
      )}
    </>
  );
}

type FacetValue = NonNullable<Facet['values']>[number];

interface ValueProps {
  facet: Facet;
  each: FacetValue;
  share: number;
  state: ListUrl;
  onChange: ChangeList;
}

function Value({ facet: { field }, each, share, state, onChange }: ValueProps): ReactElement {
  const chosen = isChosen(state, field, each, '');
  const excluded = isChosen(state, field, each, 'not_');
  const onClick = (event: MouseEvent): void => {
    onChange((now) => (event.altKey ? toggledValue(now, field, each, 'not_') : toggledValue(now, field, each, '')));
  };
  const words = valueWords(field, each);
  return (
    <span className={cx(styles.value, chosen && styles.chosen, excluded && styles.excluded)}>
      <button
        type="button"
        className={styles.only}
        aria-pressed={chosen}
        title={`${words}: ${count(each.traces)} traces`}
        onClick={onClick}
      >
        <span className={styles.name}>{words}</span>
        <span className={styles.count}>{count(each.traces)}</span>
        <span className={styles.share} style={{ width: `${share * 100}%` }} aria-hidden="true" />
      </button>
      {field !== 'sampled' && (
        <button
          type="button"
          className={styles.not}
          aria-pressed={excluded}
          aria-label={`Leave out ${words}`}
          title={`Leave out ${words}`}
          onClick={() => {
            onChange((now) => toggledValue(now, field, each, 'not_'));
          }}
        >
          ≠
        </button>
      )}
    </span>
  );
}

function valueWords(field: Facet['field'], { value, name }: FacetValue): string {
  if (field === 'verdict' && name !== undefined) return `${name}: ${value}`;
  if (field === 'score') return value.replace(':eq:', ' = ');
  if (field === 'sampled') return value === 'true' ? 'kept whole' : 'numbers only';
  return value === '' ? '(empty)' : value;
}

const isChosen = (state: ListUrl, field: string, { value, judge_id }: FacetValue, not: '' | 'not_'): boolean =>
  (state.filters.get(not + field) ?? []).includes(value) &&
  (judge_id === undefined || (state.filters.get('judge_id') ?? []).includes(judge_id));

/** Returns the state with a value added, or taken out where it is there; never both wanted and left out. */
function toggledValue(state: ListUrl, field: string, each: FacetValue, not: '' | 'not_'): ListUrl {
  const { value, judge_id } = each;
  if (isChosen(state, field, each, not)) return removeValue(state, not + field, value);
  const opposite = not === '' ? `not_${field}` : field;
  const next = addValue(removeValue(state, opposite, value), not + field, value);
  return judge_id === undefined ? next : withFilter(next, 'judge_id', [judge_id]);
}
