// The formula for the value of outcomes. Everybody who reads costs can try one: the ROI below follows
// while it is typed, and nothing is stored until somebody who may edit the policy saves it.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import panels from '../home/home.module.css';
import styles from './costs.module.css';

const FORMULA_CHARS_MAX = 1000;

interface OutcomeFormulaProps {
  /** The formula of the policy. */
  saved: string | null;
  /** The formula in the address; empty for that of the policy. */
  tried: string;
  /** Why the API refuses the formula; null if it does not. */
  refused: string | null;
  /** Names of outcomes that occur. */
  names: readonly string[];
  onTry: (formula: string) => void;
}

function useSaveFormula(onSaved: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (formula: string | null) =>
      send(org_id, 'put', '/orgs/{org_id}/policy', {
        params: { path: { org_id } },
        body: { value_of_outcomes: formula },
      }),
    onSuccess: async () => {
      await Promise.all([
        queries.invalidateQueries({ queryKey: [org_id, '/orgs/{org_id}/policy'] }),
        queries.invalidateQueries({ queryKey: [org_id, '/v1/cost/outcomes'] }),
      ]);
      onSaved();
      toast({ text: 'Saved the formula. It counts in every ROI from now on.' });
    },
  });
}

/** The section. */
export function OutcomeFormula({ saved, tried, refused, names, onTry }: OutcomeFormulaProps): ReactElement {
  const { can } = useOrganization();
  const save = useSaveFormula(() => {
    onTry('');
  });
  const isChanged = tried.trim() !== '' && tried.trim() !== saved;
  const isReady = can('settings:edit') && isChanged && refused === null && !save.isPending;
  const submit = (): void => {
    if (isReady) save.mutate(tried.trim());
  };
  useKeys('Outcomes', can('settings:edit') ? [{ keys: 'Ctrl+Enter', label: 'Save the formula', run: submit }] : []);
  return (
    <section className={panels.section}>
      <h2>Value of outcomes</h2>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field
          label="Formula in USD"
          hint={hintOf(names, saved, isChanged)}
          error={
            refused ??
            (save.error === null ? null : save.error instanceof RequestError ? save.error.detail : save.error.message)
          }
        >
          {(control) => (
            <Input
              {...control}
              className={styles.formula}
              maxLength={FORMULA_CHARS_MAX}
              placeholder={`${names[0] ?? 'tickets'} * 12.5`}
              value={tried === '' ? (saved ?? '') : tried}
              onChange={({ target }) => {
                // A blank stays in the address, so that an emptied field is not filled with the saved formula again.
                onTry(target.value === '' ? ' ' : target.value);
              }}
            />
          )}
        </Field>
        {(isChanged || (tried !== '' && saved !== null)) && (
          <div className={styles.line}>
            {can('settings:edit') && (
              <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={!isReady} busy={save.isPending}>
                Save formula
              </Button>
            )}
            <Button
              onClick={() => {
                onTry('');
              }}
            >
              {saved === null ? 'Clear formula' : 'Restore the saved formula'}
            </Button>
          </div>
        )}
      </form>
    </section>
  );
}

function hintOf(names: readonly string[], saved: string | null, isChanged: boolean): string {
  const known = names.length === 0 ? '' : `Outcomes that occur: ${names.join(', ')}. `;
  const state = isChanged
    ? 'The ROI below is that of this formula, which is not saved. '
    : saved === null
      ? 'No formula is saved, so no ROI is known. '
      : '';
  return `${known}${state}Owners save it. ROI is (value - cost) / cost.`;
}
