// The codec of the query string: what is shown stands in the address, with the API's names of
// parameters. `parse` never throws: a value that is not accepted counts as absent. `write` is
// canonical: sorted by name, defaults left out. Parameters that the codec does not know stay in the
// address. Pure.

/** How one parameter is read and written. */
export interface Field<T> {
  /** Returns undefined for a text that is not accepted. */
  parse: (text: string) => T | undefined;
  write: (value: T) => string;
  /** Value of an absent parameter. */
  fallback: T;
}

/** A text; the empty text is the default. */
export function text(): Field<string> {
  return { parse: (raw) => raw, write: (value) => value, fallback: '' };
}

/** One of some words. */
export function choice<const T extends string>(accepted: readonly T[], fallback: NoInfer<T>): Field<T> {
  return { parse: (raw) => accepted.find((word) => word === raw), write: (value) => value, fallback };
}

/** One of some words, or none. */
export function optionalChoice<const T extends string>(accepted: readonly T[]): Field<T | null> {
  return { parse: (raw) => accepted.find((word) => word === raw), write: (value) => value ?? '', fallback: null };
}

/** A comma-separated list without repeats; no item is empty or holds a comma. */
export function list(): Field<readonly string[]> {
  return {
    parse: (raw) => [...new Set(raw.split(',').filter((item) => item !== ''))],
    write: (items) => [...new Set(items.flatMap((item) => item.split(',')).filter((item) => item !== ''))].join(','),
    fallback: [],
  };
}

/** A whole number within bounds, or none. */
export function integer(min: number, max: number): Field<number | null> {
  return {
    parse: (raw) => {
      const value = /^-?\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
    write: (value) => (value === null ? '' : String(value)),
    fallback: null,
  };
}

/** A number of at least `min`, or none. */
export function decimal(min: number): Field<number | null> {
  return {
    parse: (raw) => {
      const value = raw.trim() === '' ? Number.NaN : Number(raw);
      return Number.isFinite(value) && value >= min ? value : undefined;
    },
    write: (value) => (value === null ? '' : String(value)),
    fallback: null,
  };
}

/** A switch that is off by default; `1` is on. */
export function flag(): Field<boolean> {
  return { parse: (raw) => raw === '1' || raw === 'true', write: (on) => (on ? '1' : ''), fallback: false };
}

/** A moment in ISO 8601, written in UTC, or none. */
export function moment(): Field<string | null> {
  return {
    parse: (raw) => {
      const at = /^\d{4}-\d{2}-\d{2}(T[\d:.]{5,16}(Z|[+-]\d{2}:?\d{2})?)?$/.test(raw) ? Date.parse(raw) : Number.NaN;
      return Number.isNaN(at) ? undefined : new Date(at).toISOString();
    },
    write: (value) => value ?? '',
    fallback: null,
  };
}

type State<F> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never };
export interface Codec<S> {
  /** Returns the state for a query string, with or without the leading question mark. */
  parse: (search: string) => S;
  /**
   * Returns the canonical query string, without the question mark.
   * @param current query string whose unknown parameters are kept
   */
  write: (state: S, current?: string) => string;
  /** Returns the query string for the present one with some values changed. */
  change: (current: string, patch: Partial<S>) => string;
}

/** Returns the codec of a screen's fields. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a field both reads and writes its type
export function codec<const F extends Record<string, Field<any>>>(fields: F): Codec<State<F>> {
  const entries = Object.entries(fields) as [string, Field<unknown>][];
  const parse = (search: string): State<F> => {
    const params = new URLSearchParams(search);
    return Object.fromEntries(
      entries.map(([name, field]) => {
        const raw = params.get(name);
        const value = raw === null || raw === '' ? undefined : field.parse(raw);
        return [name, value === undefined ? field.fallback : value];
      }),
    ) as State<F>;
  };
  const write = (state: State<F>, current = ''): string => {
    const kept = [...new URLSearchParams(current)].filter(([name]) => !Object.hasOwn(fields, name));
    const own = entries.flatMap(([name, field]): [string, string][] => {
      const value = field.write(state[name as keyof F]);
      return value === '' || value === field.write(field.fallback) ? [] : [[name, value]];
    });
    return canonical([...kept, ...own]);
  };
  return { parse, write, change: (current, patch) => write({ ...parse(current), ...patch }, current) };
}

/** Returns pairs as a query string, sorted by name; commas and colons stay readable. */
function canonical(pairs: readonly (readonly [string, string])[]): string {
  const sorted = pairs.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return new URLSearchParams(sorted.map(([name, value]) => [name, value]))
    .toString()
    .replaceAll('%2C', ',')
    .replaceAll('%3A', ':');
}
