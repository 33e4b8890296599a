// The value of a score, and the columns in which it is stored.
import type { UserScore } from '../../schemas/codec.ts';
import type { ScoreItem } from './trace_items.ts';

type Value = NonNullable<ScoreItem['value']>;
type Columns = Pick<UserScore, 'data_type' | 'number' | 'text'>;

/** Returns the type of a value, and the columns in which it is stored. */
export function scoreColumns(value: Value): Columns {
  if (typeof value === 'boolean') return { data_type: 'boolean', number: value ? 1 : 0, text: '' };
  if (typeof value === 'number') return { data_type: 'numeric', number: value, text: '' };
  return { data_type: 'categorical', number: null, text: value };
}

/** Returns the value of stored columns; null where a judge failed. */
export function scoreValueOf({ data_type, number, text }: Columns): ScoreItem['value'] {
  if (data_type === 'categorical') return text;
  return data_type === 'boolean' ? number === 1 : number;
}
