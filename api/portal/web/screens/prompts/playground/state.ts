// The columns and the inputs of the playground. Columns are versions, or drafts that began as one;
// inputs are values of the variables, from a call, a dataset item or by hand. Pure.
import { sameTemplate, type Template, type Values } from '../template.ts';
import { COLUMNS_MAX, type RunColumn } from '../prompts_url.ts';

export interface Column extends RunColumn {
  /** Key among the columns, which stays when others go. */
  id: number;
  /** Text of a draft; null until it is changed, and for a version. */
  edited: Template | null;
}

/** Where the values of an input come from. */
export type InputSource =
  | { kind: 'hand' }
  | { kind: 'call'; trace_id: string; span_id: string; started_at: string }
  | { kind: 'item'; dataset: string; item_index: number };

export interface PlaygroundInput {
  id: number;
  source: InputSource;
  values: Values;
}

/** Inputs at the same time: each is a call for every column. */
export const INPUTS_MAX = 10;

/** Returns the columns that a playground begins with: the version as it is, and a draft of it. */
export function firstColumns(version: string, against: string, model: string): RunColumn[] {
  const of = (one: string, isDraft: boolean): RunColumn => ({ version: one, model, isDraft });
  return against === '' ? [of(version, false), of(version, true)] : [of(against, false), of(version, false)];
}

/** Returns the columns of the address, with the drafts of columns that were there before. */
export function columnsOf(runs: readonly RunColumn[], before: readonly Column[]): Column[] {
  const left = [...before];
  let last = Math.max(0, ...before.map(({ id }) => id));
  return runs.slice(0, COLUMNS_MAX).map((run) => {
    const at = left.findIndex(({ version, isDraft }) => version === run.version && isDraft === run.isDraft);
    const [old] = at === -1 ? [] : left.splice(at, 1);
    last += old === undefined ? 1 : 0;
    return { ...run, id: old?.id ?? last, edited: old?.edited ?? null };
  });
}

/** Returns the template that a column sends. */
export const templateOfColumn = ({ edited }: Column, stored: Template): Template => edited ?? stored;

/** Returns true if a column sends something else than its version. */
export const isChanged = ({ edited, isDraft }: Column, stored: Template): boolean =>
  isDraft && edited !== null && !sameTemplate(edited, stored);

/** Returns the key of the run of a column on an input. */
export const runKey = (column: Pick<Column, 'id'>, input: Pick<PlaygroundInput, 'id'>): string =>
  `${column.id}:${input.id}`;

/** Returns the name of a column. */
export const columnName = ({ version, isDraft }: RunColumn): string =>
  isDraft ? `Draft of ${version}` : `Version ${version}`;
