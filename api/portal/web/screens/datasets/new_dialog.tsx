// The dialog that makes a dataset from a name and items as JSON.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Editor } from '../../editor/editor.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import styles from '../compare/compare.module.css';
import { datasetPath, makeDataset, rereadDatasets } from './dataset_api.ts';
import { type NewItem, readItem } from './new_item.ts';

const EXAMPLE = '[{"input": {"text": "May I return a sofa?"}, "expected": {"answer": "Within 30 days"}}]';

/** Reads a list of items. @returns the items, or what is wrong in words */
function readItems(text: string): NewItem[] | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'The items must be a list in JSON.';
  }
  if (!Array.isArray(value) || value.length === 0) return 'The items must be a list with at least one item.';
  const items: NewItem[] = [];
  for (const [at, one] of value.entries()) {
    const item = readItem(JSON.stringify(one));
    if (typeof item === 'string') return `Item ${at + 1}: ${item}`;
    items.push(item);
  }
  return items;
}

/** Returns the mutation that creates the dataset and opens its page. */
function useMake(name: string, onClose: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState(randomId);
  return useMutation({
    mutationFn: (items: NewItem[]) => makeDataset(org_id, name.trim(), items, key),
    onSuccess: ({ data }) => {
      void rereadDatasets(queries, org_id);
      onClose();
      navigate(datasetPath(org_id, data.dataset_id));
    },
    // The name or the items are changed before the next try, so that is another request.
    onError: () => {
      setKey(randomId());
    },
  });
}

/** The dialog. */
export default function NewDialog({ onClose }: { onClose: () => void }): ReactElement {
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
  }, []);
  const make = useMake(name, onClose);
  const save = (): void => {
    if (name.trim() === '' || make.isPending) return;
    const items = readItems(text);
    setProblem(typeof items === 'string' ? items : null);
    if (typeof items !== 'string') make.mutate(items);
  };
  return (
    <Dialog
      title="Create dataset"
      form="wide"
      onClose={onClose}
      onSubmit={save}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            type="submit"
            busy={make.isPending}
            disabled={name.trim() === '' || text.trim() === ''}
          >
            Create dataset
          </Button>
        </>
      }
    >
      <div className={styles.choices}>
        <Field label="Name" hint="Its first version is 1.">
          {(control) => (
            <Input
              {...control}
              ref={input}
              maxLength={200}
              value={name}
              onChange={(event) => {
                setName(event.currentTarget.value);
              }}
            />
          )}
        </Field>
        <Editor
          label="Items"
          language="json"
          rows={8}
          rowsMax={16}
          value={text}
          example={EXAMPLE}
          hint="Each item has an input, and may have what is expected and metadata."
          error={problem ?? (make.error instanceof RequestError ? make.error.detail : (make.error?.message ?? null))}
          onChange={setText}
        />
      </div>
    </Dialog>
  );
}
