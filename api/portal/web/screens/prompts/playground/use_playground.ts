// The state of the playground of a prompt: columns from the address, inputs, and the runs. It belongs
// to the page, so that it stays while another tab is shown.
import { useQueries, useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from 'react';
import { useOrganization } from '../../../client/session.ts';
import { callsQuery, type Prompt, promptQuery } from '../prompt_api.ts';
import type { PromptState, RunColumn } from '../prompts_url.ts';
import { missingValues, rendered, type Template, variablesOf } from '../template.ts';
import { keepPlayground, type Kept, keptPlayground } from './kept.ts';
import { Runs } from './runs.ts';
import {
  type Column,
  columnsOf,
  firstColumns,
  INPUTS_MAX,
  type InputSource,
  type PlaygroundInput,
  runKey,
  templateOfColumn,
} from './state.ts';
import type { ModelCall } from './stream_call.ts';

/** Real calls that the playground begins with. */
const CALLS_FIRST = 3;
/** Changes are kept this long after the last one, milliseconds. */
const KEEP_AFTER_MS = 300;

export interface ShownColumn extends Column {
  /** Template of the version; undefined until it is there. */
  stored: Template | undefined;
  /** True: the version cannot be read. */
  isLost: boolean;
  /** Prompt and model that the column sends. */
  template: Template;
}

/** The columns of the address with their templates. */
function useColumns(prompt: Prompt, { runs, version, against }: PromptState, model: string): ShownColumn[] {
  const { org_id } = useOrganization();
  const wanted = runs.length > 0 ? runs : firstColumns(version === '' ? prompt.version : version, against, model);
  const [columns, setColumns] = useState<readonly Column[]>(() => columnsOf(wanted, []));
  const shape = JSON.stringify(wanted);
  const adopt = useEffectEvent(() => {
    setColumns(columnsOf(wanted, columns));
  });
  useEffect(() => {
    adopt();
  }, [shape]);
  const stored = useQueries({
    queries: columns.map((column) => promptQuery(org_id, prompt.name, column.version)),
    combine: (answers) => answers.map(({ data, error }) => ({ template: data?.data.template, isLost: error !== null })),
  });
  return columns.map((column, index) => ({
    ...column,
    stored: stored[index]?.template,
    isLost: stored[index]?.isLost ?? false,
    template: templateOfColumn(column, stored[index]?.template ?? ''),
  }));
}

/** Returns the inputs, the newest real calls at first, and the functions that change them. */
function useInputs(name: string, canRead: boolean, isShown: boolean, kept: Kept['inputs']) {
  const { org_id } = useOrganization();
  const [inputs, setInputs] = useState<readonly PlaygroundInput[] | null>(
    () => kept?.map((input, index) => ({ id: index + 1, ...input })) ?? null,
  );
  const [isOwn, setOwn] = useState(kept !== null);
  const last = useRef(kept?.length ?? 0);
  const calls = useQuery({ ...callsQuery(org_id, name), enabled: canRead && isShown });
  const made = (source: InputSource, values: PlaygroundInput['values']): PlaygroundInput => ({
    id: (last.current += 1),
    source,
    values,
  });
  const begin = useEffectEvent(() => {
    if (inputs !== null) return;
    // Runs of the playground are calls too, and repeat the values of others.
    const distinct = new Map(
      (calls.data?.data ?? []).toReversed().map((call) => [JSON.stringify(call.variables), call]),
    );
    const real = [...distinct.values()]
      .filter(({ variables }) => variables !== null)
      .reverse()
      .slice(0, CALLS_FIRST);
    const first = real.map(({ trace_id, span_id, started_at, variables }) =>
      made({ kind: 'call', trace_id, span_id, started_at }, variables ?? {}),
    );
    setInputs(first.length > 0 ? first : [made({ kind: 'hand' }, {})]);
  });
  const isKnown = !canRead || !calls.isPending;
  useEffect(() => {
    if (isKnown) begin();
  }, [isKnown]);
  return {
    inputs: inputs ?? [],
    calls: calls.data?.data ?? [],
    isPending: inputs === null,
    /** True once the person has chosen or changed an input. */
    isOwn,
    add: (added: readonly { source: InputSource; values: PlaygroundInput['values'] }[]): void => {
      setOwn(true);
      setInputs((now) => {
        // An input without any value was the empty one of the beginning.
        const kept = (now ?? []).filter(
          ({ source, values }) => source.kind !== 'hand' || Object.keys(values).length > 0,
        );
        const before = added.every(({ source }) => source.kind === 'hand') ? (now ?? []) : kept;
        return [...before, ...added.map(({ source, values }) => made(source, values))].slice(0, INPUTS_MAX);
      });
    },
    change: (id: number, values: PlaygroundInput['values']): void => {
      setOwn(true);
      setInputs((now) => (now ?? []).map((input) => (input.id === id ? { ...input, values } : input)));
    },
    remove: (id: number): void => {
      setOwn(true);
      setInputs((now) => (now ?? []).filter((input) => input.id !== id));
    },
  };
}

export type Playground = ReturnType<typeof usePlayground>;

/** Returns the playground of a prompt. */
export function usePlayground(
  prompt: Prompt,
  state: PromptState,
  changeUrl: (patch: Partial<PromptState>, options?: { replace?: boolean }) => void,
) {
  const { org_id, can } = useOrganization();
  const [kept] = useState(() => keptPlayground(org_id, prompt.name));
  const inputs = useInputs(prompt.name, can('traces:read'), state.view === 'playground', kept.inputs);
  const model = prompt.model ?? inputs.calls[0]?.model ?? '';
  const shown = useColumns(prompt, state, model);
  const [edits, setEdits] = useState(() => editsOf(shown, kept.drafts));
  const columns = shown.map((column) => {
    const edited = column.isDraft ? (edits.get(column.id) ?? null) : null;
    return { ...column, edited, template: templateOfColumn({ ...column, edited }, column.stored ?? '') };
  });
  useKeeping(org_id, prompt.name, columns, inputs);
  const [runs] = useState(() => new Runs());
  useSyncExternalStore(runs.subscribe, runs.version);
  useEffect(
    () => () => {
      runs.stop();
    },
    [runs],
  );
  const names = variablesOf(...columns.map(({ template }) => template));
  const problem = problemOf(columns, inputs.inputs);
  return {
    inputs,
    columns,
    names,
    runs,
    problem,
    setColumns: (next: readonly RunColumn[], replace = false): void => {
      changeUrl(
        { runs: next.map(({ version, model: named, isDraft }) => ({ version, model: named, isDraft })) },
        { replace },
      );
    },
    edit: (id: number, template: Template): void => {
      setEdits((now) => new Map(now).set(id, template));
    },
    run: (): void => {
      if (problem !== null) return;
      const calls = inputs.inputs.flatMap((input) =>
        columns.map((column): [string, ModelCall] => [
          runKey(column, input),
          {
            org_id,
            model: column.model,
            messages: rendered(column.template, input.values),
            prompt_name: prompt.name,
            prompt_version: column.isDraft ? null : column.version,
            variables: input.values,
          },
        ]),
      );
      void runs.start(calls);
    },
  };
}

/** Returns the kept texts of drafts by the columns that they belong to. */
function editsOf(columns: readonly Column[], drafts: Kept['drafts']): ReadonlyMap<number, Template> {
  const left = [...drafts];
  const edits = new Map<number, Template>();
  for (const { id, version, isDraft } of columns) {
    const at = isDraft ? left.findIndex((draft) => draft.version === version) : -1;
    const [draft] = at === -1 ? [] : left.splice(at, 1);
    if (draft !== undefined) edits.set(id, draft.template);
  }
  return edits;
}

/** Keeps drafts and inputs shortly after each change, and when another page of the portal opens. */
function useKeeping(
  org_id: string,
  name: string,
  columns: readonly ShownColumn[],
  { inputs, isOwn }: ReturnType<typeof useInputs>,
): void {
  const drafts = columns.flatMap(({ version, edited }) => (edited === null ? [] : [{ version, template: edited }]));
  const keep = useEffectEvent(() => {
    keepPlayground(org_id, name, {
      drafts,
      inputs: isOwn ? inputs.map(({ source, values }) => ({ source, values })) : null,
    });
  });
  const edits = JSON.stringify(drafts);
  useEffect(() => {
    const timer = setTimeout(() => {
      keep();
    }, KEEP_AFTER_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [edits, inputs]);
  useEffect(
    () => () => {
      keep();
    },
    [],
  );
}

/** Returns why the playground cannot run yet; null when it can. */
function problemOf(columns: readonly ShownColumn[], inputs: readonly PlaygroundInput[]): string | null {
  const lost = columns.find(({ isLost }) => isLost);
  if (lost !== undefined) return `Version ${lost.version} cannot be read.`;
  if (columns.some(({ stored }) => stored === undefined)) return 'The versions are being loaded.';
  if (columns.some(({ model }) => model.trim() === '')) return 'Name a model for each column.';
  if (inputs.length === 0) return 'Add an input.';
  for (const [index, { values }] of inputs.entries())
    for (const { template } of columns) {
      const [missing] = missingValues(template, values);
      if (missing !== undefined) return `Input ${index + 1} has no value for ${missing}.`;
    }
  return null;
}
