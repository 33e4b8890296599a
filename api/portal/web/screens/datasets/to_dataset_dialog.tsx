// The dialog that makes items of a dataset from traces or a span: which dataset, what the input is
// made of, and what a good answer is. Enter adds them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, type RefObject, useEffect, useId, useMemo, useRef, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import fieldStyles from '../../ui/field.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { oneLine, preview } from '../../trace/text/one_line.ts';
import styles from '../compare/compare.module.css';
import { addItems, datasetPath, keepLastDataset, lastDataset, namesQuery, rereadDatasets } from './dataset_api.ts';
import { answerOf, type InputForm, itemFrom, type NewItem, type Source } from './new_item.ts';
import { readSpanSource, readTraceSources, TRACES_MAX } from './read_sources.ts';

/** A span, or whole traces. */
export type Targets = { trace_id: string; span_id: string } | { trace_ids: readonly string[] };

const PREVIEW_CHARS = 160;

interface Draft {
  name: string;
  form: InputForm;
  expects: 'answer' | 'none';
  /** Text that was typed in the place of the only answer; null while the answer stands. */
  correction: string | null;
}

function useSources(targets: Targets) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key] = useState(randomId);
  return useQuery({
    queryKey: [org_id, 'dataset sources', key],
    queryFn: async ({ signal }) =>
      'trace_ids' in targets
        ? readTraceSources(org_id, targets.trace_ids, signal)
        : [await readSpanSource(queries, org_id, targets.trace_id, targets.span_id)],
    gcTime: 0,
    staleTime: Infinity,
    enabled: !('trace_ids' in targets) || targets.trace_ids.length <= TRACES_MAX,
  });
}

function itemsOf(sources: readonly Source[], { form, expects, correction }: Draft): NewItem[] {
  return sources
    .map((source) => itemFrom(source, form, expects === 'none' ? null : (correction ?? answerOf(source.response))))
    .filter((item) => item !== null);
}

/** The dialog. */
export default function ToDatasetDialog({ targets, onClose }: { targets: Targets; onClose: () => void }): ReactElement {
  const [draft, setDraft] = useState<Draft>(() => ({
    name: lastDataset(),
    form: 'message',
    expects: 'answer',
    correction: null,
  }));
  const sources = useSources(targets);
  const asked = 'trace_ids' in targets ? targets.trace_ids.length : 1;
  const items = useMemo(() => itemsOf(sources.data ?? [], draft), [sources.data, draft]);
  const add = useAdd(items, draft, onClose);
  const name = useRef<HTMLInputElement>(null);
  useEffect(() => {
    name.current?.focus();
    name.current?.select();
  }, []);
  const isReady = draft.name.trim() !== '' && items.length > 0;
  const words = items.length === 1 ? 'Add item' : `Add ${count(items.length)} items`;
  const save = (): void => {
    if (isReady && !add.isPending) add.mutate();
  };
  return (
    <Dialog
      title="Add to dataset"
      onClose={onClose}
      onSubmit={save}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" busy={add.isPending} disabled={!isReady}>
            {words}
          </Button>
        </>
      }
    >
      <div className={styles.choices}>
        <NameField
          input={name}
          value={draft.name}
          onChange={(next) => {
            setDraft({ ...draft, name: next });
          }}
        />
        {asked > TRACES_MAX ? (
          <p role="alert">At most {TRACES_MAX} traces go into a dataset at once. Select fewer.</p>
        ) : sources.isError ? (
          <ErrorPanel error={sources.error} what="the texts" onRetry={() => void sources.refetch()} />
        ) : sources.data === undefined ? (
          <Skeleton rows={4} />
        ) : (
          <Content sources={sources.data} draft={draft} items={items} asked={asked} onChange={setDraft} />
        )}
        {add.error !== null && (
          <p role="alert" className={fieldStyles.error}>
            {add.error instanceof RequestError ? add.error.detail : add.error.message}
          </p>
        )}
      </div>
    </Dialog>
  );
}

function useAdd(items: readonly NewItem[], { name }: Draft, onClose: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key] = useState(randomId);
  return useMutation({
    mutationFn: () => addItems(org_id, name.trim(), items, key),
    onSuccess: (made) => {
      keepLastDataset(made.name);
      void rereadDatasets(queries, org_id);
      toast({
        text: `Added ${count(items.length)} ${items.length === 1 ? 'item' : 'items'} to ${oneLine(made.name)}, version ${oneLine(made.version)}.`,
        link: { label: 'Show the dataset', href: datasetPath(org_id, made.dataset_id) },
      });
      onClose();
    },
  });
}

interface NameFieldProps {
  input: RefObject<HTMLInputElement | null>;
  value: string;
  onChange: (name: string) => void;
}

/** The name of the dataset, with the names of those that exist. */
function NameField({ input, value, onChange }: NameFieldProps): ReactElement {
  const { org_id } = useOrganization();
  const id = useId();
  const known = useQuery(namesQuery(org_id));
  const names = known.data ?? [];
  const isNew = value.trim() !== '' && known.data !== undefined && !names.includes(value.trim());
  const hint =
    value.trim() === ''
      ? 'Choose a dataset, or type the name of a new one.'
      : isNew
        ? 'A new dataset of this name is created.'
        : 'The items make its next version.';
  return (
    <Field label="Dataset" hint={hint}>
      {(control) => (
        <>
          <Input
            {...control}
            ref={input}
            list={id}
            maxLength={200}
            value={value}
            onChange={(event) => {
              onChange(event.currentTarget.value);
            }}
          />
          <datalist id={id}>
            {names.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

interface ContentProps {
  sources: readonly Source[];
  draft: Draft;
  items: readonly NewItem[];
  asked: number;
  onChange: (draft: Draft) => void;
}

function Content({ sources, draft, items, asked, onChange }: ContentProps): ReactElement {
  const [only] = sources;
  const left = asked - items.length;
  return (
    <>
      <FormField sources={sources} draft={draft} onChange={onChange} />
      {items[0] !== undefined && (
        <p className={styles.quiet}>{preview(JSON.stringify(items[0].input), PREVIEW_CHARS)}</p>
      )}
      <Field label="Expected">
        {(control) => (
          <Select
            {...control}
            value={draft.expects}
            onChange={(event) => {
              onChange({ ...draft, expects: event.currentTarget.value === 'none' ? 'none' : 'answer' });
            }}
          >
            <option value="answer">{asked === 1 ? 'The answer, or its correction' : 'The answer'}</option>
            <option value="none">Nothing</option>
          </Select>
        )}
      </Field>
      {asked === 1 && only !== undefined && draft.expects === 'answer' && (
        <Field label="Answer" hint="Change it where the answer was wrong.">
          {(control) => (
            <textarea
              {...control}
              rows={5}
              className={fieldStyles.input}
              value={draft.correction ?? answerOf(only.response)}
              onChange={(event) => {
                onChange({ ...draft, correction: event.currentTarget.value });
              }}
            />
          )}
        </Field>
      )}
      {left > 0 && (
        <p role="status">
          {left === 1 && asked === 1
            ? 'This has no text that the input could be made of.'
            : `${count(left)} of ${count(asked)} have no such text and are left out.`}
        </p>
      )}
    </>
  );
}

/** Asks what the input of an item is made of. */
function FormField({ sources, draft, onChange }: Pick<ContentProps, 'sources' | 'draft' | 'onChange'>): ReactElement {
  const forms: [InputForm, string][] = [
    ['message', 'The last message of the user'],
    ['messages', 'All messages of the prompt'],
    ...(sources.some(({ variables }) => variables !== null)
      ? ([['variables', 'The variables of the prompt']] as [InputForm, string][])
      : []),
  ];
  return (
    <Field label="Input">
      {(control) => (
        <Select
          {...control}
          value={draft.form}
          onChange={(event) => {
            const form = forms.find(([one]) => one === event.currentTarget.value)?.[0] ?? 'message';
            onChange({ ...draft, form });
          }}
        >
          {forms.map(([form, label]) => (
            <option key={form} value={form}>
              {label}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
