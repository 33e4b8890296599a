// The button and the key that run an eval over chosen traces: they open the form of the list of evals
// with the ids in its address.
import type { ReactElement } from 'react';
import { useLocation } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';

/** Ids that an address holds; more are judged by the query of their list. */
const IDS_MAX = 200;

/** The button; nothing for a person who may not run judges. */
export function EvalButton({ trace_ids }: { trace_ids: readonly string[] }): ReactElement | null {
  const { can } = useOrganization();
  return can('judges:run') ? <Allowed trace_ids={trace_ids} /> : null;
}

function Allowed({ trace_ids }: { trace_ids: readonly string[] }): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const fits = trace_ids.length <= IDS_MAX;
  const open = (): void => {
    if (fits)
      navigate(`/o/${encodeURIComponent(org_id)}/evals?new=1&trace_ids=${trace_ids.map(encodeURIComponent).join(',')}`);
  };
  useKeys('Eval', [{ keys: 'e', label: 'Run an eval over the selected traces', run: open }]);
  return (
    <Button
      icon="evals"
      keys="e"
      disabled={!fits}
      hint={
        fits
          ? 'Run an eval over the selected traces'
          : `Select at most ${IDS_MAX} traces, or run the eval over the list`
      }
      onClick={open}
    >
      Run eval
    </Button>
  );
}
