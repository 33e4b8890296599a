// The fields of a monitor that say what it measures: view, measure, groups and filters.
import { type ReactElement, useId } from 'react';
import { Button } from '../../ui/button.tsx';
import { Input, Select } from '../../ui/field.tsx';
import judges from '../judges/judges.module.css';
import { Choice } from './controls.tsx';
import {
  type AnalyticsView,
  aggOf,
  type Draft,
  type DraftErrors,
  type DraftFilter,
  type Op,
  viewOf,
  VIEWS,
} from './draft.ts';
import { aggWords, OPS_WORDS, plain } from './monitor_words.ts';
import styles from './monitors.module.css';

const FILTERS_MAX = 10;

export interface DraftFieldsProps {
  draft: Draft;
  errors: DraftErrors;
  views: readonly AnalyticsView[];
  onChange: (patch: Partial<Draft>) => void;
}

/** The fields. */
export function QueryFields(props: DraftFieldsProps): ReactElement {
  const { draft, errors, views, onChange } = props;
  const view = views.find(({ name }) => name === draft.view);
  const measure = view?.measures.find(({ name }) => name === draft.measure);
  const choose = (name: string, within = view): void => {
    const found = within?.measures.find((one) => one.name === name);
    const aggs = found?.aggs ?? [];
    onChange({ measure: name, agg: aggs.includes(draft.agg) ? draft.agg : aggOf(aggs[0]) });
  };
  const aggs = (measure?.aggs ?? [draft.agg]).filter((agg) => agg !== 'histogram');
  return (
    <>
      <div className={judges.fields}>
        <Choice
          label="Of"
          value={draft.view}
          options={VIEWS.map((one) => [one, one])}
          onChange={(value) => {
            const next = viewOf(value);
            onChange({ view: next, group_by: '', filters: [] });
            choose(
              'count',
              views.find(({ name }) => name === next),
            );
          }}
        />
        <Choice
          label="Measure"
          hint={measure?.description ?? ''}
          error={errors['measure'] ?? null}
          value={draft.measure}
          options={named(view?.measures, draft.measure)}
          onChange={choose}
        />
        <Choice
          label="As"
          error={errors['agg'] ?? null}
          value={draft.agg}
          options={aggs.map((agg) => [agg, aggWords(agg)])}
          onChange={(agg) => {
            onChange({ agg: aggOf(agg) });
          }}
        />
        <Choice
          label="For each"
          hint="Each value has a state of its own"
          value={draft.group_by}
          options={[['', 'everything together'], ...named(view?.dimensions, draft.group_by)]}
          onChange={(group_by) => {
            onChange({ group_by });
          }}
        />
      </div>
      <Filters {...props} view={view} />
    </>
  );
}

/** Returns names for a choice; the chosen one is there even before the schema is. */
function named(all: readonly { name: string }[] | undefined, chosen: string): (readonly [string, string])[] {
  const names = (all ?? []).map(({ name }) => name);
  const shown = chosen === '' || names.includes(chosen) ? names : [chosen, ...names];
  return shown.map((name) => [name, plain(name)]);
}

function Filters({
  draft: { filters },
  errors,
  view,
  onChange,
}: DraftFieldsProps & { view: AnalyticsView | undefined }): ReactElement {
  const id = useId();
  const set = (next: readonly DraftFilter[]): void => {
    onChange({ filters: next });
  };
  return (
    <fieldset className={styles.filters}>
      <legend>Filters</legend>
      <datalist id={id}>
        {[...(view?.dimensions ?? []).map(({ name }) => name), ...(view?.filters ?? [])].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </datalist>
      {filters.map((filter, at) => (
        <FilterRow
          key={at}
          filter={filter}
          number={at + 1}
          list={id}
          error={errors[`filters[${at}]`] ?? null}
          onChange={(patch) => {
            set(filters.map((one, index) => (index === at ? { ...one, ...patch } : one)));
          }}
          onRemove={() => {
            set(filters.filter((_, index) => index !== at));
          }}
        />
      ))}
      {filters.length < FILTERS_MAX && (
        <Button
          icon="plus"
          onClick={() => {
            set([...filters, { field: '', op: 'eq', value: '' }]);
          }}
        >
          Add filter
        </Button>
      )}
    </fieldset>
  );
}

interface FilterRowProps {
  filter: DraftFilter;
  number: number;
  /** Id of the list of fields. */
  list: string;
  error: string | null;
  onChange: (patch: Partial<DraftFilter>) => void;
  onRemove: () => void;
}

function FilterRow({ filter, number, list, error, onChange, onRemove }: FilterRowProps): ReactElement {
  const { field, op, value } = filter;
  return (
    <div>
      <div className={styles.filter}>
        <Input
          aria-label={`Field of filter ${number}`}
          list={list}
          maxLength={300}
          placeholder="Field"
          aria-invalid={error === null ? undefined : true}
          value={field}
          onChange={({ target }) => {
            onChange({ field: target.value });
          }}
        />
        <Select
          aria-label={`Comparison of filter ${number}`}
          value={op}
          onChange={({ target }) => {
            onChange({ op: target.value as Op });
          }}
        >
          {Object.entries(OPS_WORDS).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </Select>
        <Input
          aria-label={`Value of filter ${number}`}
          maxLength={1024}
          placeholder={op === 'exists' ? 'true or false' : op === 'in' || op === 'not_in' ? 'a, b' : 'Value'}
          value={value}
          onChange={({ target }) => {
            onChange({ value: target.value });
          }}
        />
        <Button look="quiet" icon="x" hint={`Remove filter ${number}`} onClick={onRemove} />
      </div>
      {error !== null && <p className={styles.error}>{error}</p>}
    </div>
  );
}
