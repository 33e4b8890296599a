// The filters of a list as chips that can be removed.
import type { ReactElement } from 'react';
import { count, duration, money } from '../text/format.ts';
import { Chip } from '../ui/chip.tsx';
import { filterNamed, type FilterKind } from './filters.ts';
import type { ListUrl } from './list_url.ts';
import { type Chip as Filter, chipsOf, removeValue } from './query_text.ts';
import type { ChangeList } from './use_list_url.ts';

/** One chip for each value of a filter. */
export function FilterChips({ state, onChange }: { state: ListUrl; onChange: ChangeList }): ReactElement {
  return (
    <>
      {chipsOf(state).map((filter) => (
        <Chip
          key={`${filter.name}:${filter.value}`}
          field={fieldWords(filter.name)}
          tone={filterNamed(filter.name)?.negated === true ? 'warn' : 'accent'}
          removeLabel={`Remove the filter ${fieldWords(filter.name)} ${valueWords(filter)}`}
          onRemove={() => {
            onChange((now) => removeValue(now, filter.name, filter.value));
          }}
        >
          <span title={filter.value}>{valueWords(filter)}</span>
        </Chip>
      ))}
    </>
  );
}

/** Returns the words for a parameter of the API. */
export function fieldWords(name: string): string {
  const filter = filterNamed(name);
  if (filter === null) return name;
  return filter.negated ? `${filter.spec.label} is not` : filter.spec.label;
}

/** Returns the value of a filter with its unit. */
export function valueWords({ name, value }: Filter): string {
  return inWords(filterNamed(name)?.spec.kind ?? 'text', value);
}

function inWords(kind: FilterKind, value: string): string {
  const number = Number(value);
  if (kind === 'text' || (kind !== 'flag' && !Number.isFinite(number))) return value;
  if (kind === 'milliseconds') return duration(number);
  if (kind === 'usd') return money(number);
  if (kind === 'count') return count(number);
  return value === 'true' || value === '1' ? 'yes' : 'no';
}
