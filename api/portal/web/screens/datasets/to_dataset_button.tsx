// The button and the key that put traces or a span into a dataset. The dialog is loaded when it opens.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { deferred } from '../../ui/deferred.tsx';
import type { Targets } from './to_dataset_dialog.tsx';

const ToDatasetDialog = deferred(() => import('./to_dataset_dialog.tsx'));

interface ToDatasetProps {
  /** Returns what goes into the dataset, at the moment of the choice. */
  targets: () => Targets;
}

/** The button; nothing for a person who may not change datasets. */
export function ToDatasetButton(props: ToDatasetProps): ReactElement | null {
  const { can } = useOrganization();
  return can('datasets:write') ? <Allowed {...props} /> : null;
}

function Allowed({ targets }: ToDatasetProps): ReactElement {
  const [chosen, setChosen] = useState<Targets | null>(null);
  const open = (): void => {
    setChosen(targets());
  };
  useKeys('Datasets', [{ keys: 'd', label: 'Add to a dataset', run: open }]);
  return (
    <>
      <Button icon="datasets" keys="d" hint="Add to a dataset" onClick={open}>
        To dataset
      </Button>
      {chosen !== null && (
        <ToDatasetDialog
          targets={chosen}
          onClose={() => {
            setChosen(null);
          }}
        />
      )}
    </>
  );
}
