// The dialog that takes inputs of the playground from a dataset: its items with what they hold.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { type Answer, apiQuery } from '../../../client/api.ts';
import { useOrganization } from '../../../client/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { EmptyState } from '../../../ui/empty_state.tsx';
import { ErrorPanel } from '../../../ui/error_panel.tsx';
import { Field, Select } from '../../../ui/field.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import styles from '../prompts.module.css';
import type { Values } from '../template.ts';
import type { InputSource } from './state.ts';

const ITEMS_SHOWN = 50;
const LINE_CHARS = 200;

interface AddItemsProps {
  /** Number of inputs that there is room for. */
  room: number;
  onClose: () => void;
  onAdd: (inputs: { source: InputSource; values: Values }[]) => void;
}

/** The open dialog. */
export function AddItems({ room, onClose, onAdd }: AddItemsProps): ReactElement {
  const { org_id } = useOrganization();
  const [chosen, setChosen] = useState('');
  const [ticked, setTicked] = useState<ReadonlySet<number>>(new Set());
  const datasets = useQuery(apiQuery(org_id, '/v1/datasets', { query: { limit: 200 } }));
  const list = datasets.data?.data ?? [];
  const dataset = list.find(({ dataset_id }) => dataset_id === chosen) ?? list[0];
  const dataset_id = dataset?.dataset_id ?? '';
  const items = useQuery({
    ...apiQuery(org_id, '/v1/datasets/{dataset_id}/items', { path: { dataset_id }, query: { limit: ITEMS_SHOWN } }),
    enabled: dataset_id !== '',
  });
  const add = (): void => {
    if (dataset === undefined || ticked.size === 0) return;
    onAdd(
      (items.data?.data ?? [])
        .filter(({ item_index }) => ticked.has(item_index))
        .map(({ item_index, input }) => ({
          source: { kind: 'item', dataset: `${dataset.name} ${dataset.version}`, item_index },
          // A template may name the whole input, as a run of the dataset does.
          values: { input, ...input },
        })),
    );
    onClose();
  };
  const error = datasets.error ?? items.error;
  return (
    <Dialog
      title="Inputs from a dataset"
      form="wide"
      onClose={onClose}
      onSubmit={add}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={ticked.size === 0} onClick={add}>
            Add {ticked.size} {ticked.size === 1 ? 'input' : 'inputs'}
          </Button>
        </>
      }
    >
      <div className={styles.section}>
        {error !== null && <ErrorPanel error={error} what="the datasets" />}
        {datasets.isPending && <Skeleton rows={6} height={20} />}
        {datasets.data?.data.length === 0 && <NoDatasets />}
        {dataset !== undefined && (
          <DatasetSelect
            datasets={list}
            chosen={dataset_id}
            onChoose={(id) => {
              setChosen(id);
              setTicked(new Set());
            }}
          />
        )}
        {items.data?.data.map(({ item_index, input }) => (
          <ItemLine
            key={item_index}
            text={`${item_index}: ${JSON.stringify(input).slice(0, LINE_CHARS)}`}
            isTicked={ticked.has(item_index)}
            hasRoom={ticked.size < room}
            onToggle={() => {
              setTicked(ticked.symmetricDifference(new Set([item_index])));
            }}
          />
        ))}
      </div>
    </Dialog>
  );
}

const NoDatasets = (): ReactElement => (
  <EmptyState title="No datasets yet">A dataset holds inputs with the answers that are expected.</EmptyState>
);

interface DatasetSelectProps {
  datasets: Answer<'/v1/datasets'>['data'];
  chosen: string;
  onChoose: (dataset_id: string) => void;
}

function DatasetSelect({ datasets, chosen, onChoose }: DatasetSelectProps): ReactElement {
  return (
    <Field label="Dataset">
      {(control) => (
        <Select
          {...control}
          value={chosen}
          onChange={(event) => {
            onChoose(event.target.value);
          }}
        >
          {datasets.map(({ dataset_id, name, version, item_count }) => (
            <option key={dataset_id} value={dataset_id}>
              {name} {version}, {item_count} items
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

interface ItemLineProps {
  text: string;
  isTicked: boolean;
  hasRoom: boolean;
  onToggle: () => void;
}

function ItemLine({ text, isTicked, hasRoom, onToggle }: ItemLineProps): ReactElement {
  return (
    <label className={styles.line}>
      <input type="checkbox" checked={isTicked} disabled={!isTicked && !hasRoom} onChange={onToggle} />
      <span className={styles.quiet}>{text}</span>
    </label>
  );
}
