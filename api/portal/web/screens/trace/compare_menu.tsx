// The action Compare of a trace: with the last success of the same agent and name, which its key does
// at once, with the run before, or with any other trace.
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../../client/session.ts';
import { RequestError } from '../../client/error.ts';
import { useKeys } from '../../shell/keys.ts';
import { deferred } from '../../ui/deferred.tsx';
import { Menu } from '../../ui/menu.tsx';
import { toast } from '../../ui/toast.tsx';
import { type Compared, comparePath, lastSuccess, previousRun } from '../compare/candidates.ts';

const ChooseDialog = deferred(() => import('../compare/choose_dialog.tsx'));

export function CompareMenu({ trace }: { trace: Compared }): ReactElement {
  const { org_id } = useOrganization();
  const [isChoosing, setChoosing] = useState(false);
  const compareWith = (find: typeof lastSuccess, none: string) => (): void => {
    find(org_id, trace).then(
      (found) => {
        if (found === null) {
          toast({ text: `${none} Choose another trace.` });
          setChoosing(true);
        } else navigate(comparePath(org_id, found, trace.trace_id));
      },
      (error: unknown) => {
        toast({ tone: 'error', text: error instanceof RequestError ? error.detail : String(error) });
      },
    );
  };
  const withSuccess = compareWith(lastSuccess, 'No other trace of this agent and name succeeded.');
  const withPrevious = compareWith(previousRun, 'There is no earlier trace of this agent and name.');
  const choose = (): void => {
    setChoosing(true);
  };
  useKeys('Comparison', [
    { keys: 'c', label: 'Compare with the last success', run: withSuccess },
    { keys: 'C', label: 'Choose a trace to compare with', run: choose },
  ]);
  return (
    <>
      <Menu
        label="Compare"
        align="end"
        icon="compare"
        items={[
          { label: 'With the last success', aside: 'c', onSelect: withSuccess },
          { label: 'With the run before', onSelect: withPrevious },
          { label: 'With another trace …', aside: 'C', onSelect: choose },
        ]}
      >
        Compare
      </Menu>
      {isChoosing && (
        <ChooseDialog
          trace={trace}
          onClose={() => {
            setChoosing(false);
          }}
        />
      )}
    </>
  );
}
