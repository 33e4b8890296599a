// Repricing: the calls of an organization in a range of days get the cost of the current prices.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { count, moneyExact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { formErrors } from '../costs/field_error.ts';
import { OrgChoice } from './org_choice.tsx';
import styles from './operator.module.css';

type Repriced = Awaited<ReturnType<typeof reprice>>['data'];
type Range = { org: string; since: string; until: string; model: string };

const CODEC = codec({ org: text(), since: text(), until: text(), model: text() });
const DAY_MS = 86_400_000;
const DAYS_BACK = 30;
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns the body of the request; the last day counts as a whole. */
function bodyOf({ org, since, until, model }: Range) {
  return {
    org_id: org,
    since: `${since}T00:00:00Z`,
    until: new Date(Date.parse(`${until}T00:00:00Z`) + DAY_MS).toISOString(),
    ...(model.trim() === '' ? {} : { model: model.trim() }),
  };
}

const reprice = (range: Range) => send(null, 'post', '/admin/reprice', { body: bodyOf(range) });

/** The page. */
export default function RepricingPage(): ReactElement {
  const [state, change] = useSearchState(CODEC);
  const [today] = useState(() => Date.now());
  const range: Range = {
    ...state,
    since: state.since === '' ? dayOf(today - DAYS_BACK * DAY_MS) : state.since,
    until: state.until === '' ? dayOf(today) : state.until,
  };
  const run = useMutation({ mutationFn: () => reprice(range) });
  const errors = formErrors(run.error, ['org_id', 'since', 'until', 'model']);
  const isReady = range.org !== '';
  const submit = (): void => {
    if (isReady && !run.isPending) run.mutate();
  };
  const field = (name: 'since' | 'until' | 'model', label: string, hint: string): ReactElement => (
    <Field label={label} hint={hint} error={errors.fields[name] ?? null}>
      {(control) => (
        <Input
          {...control}
          type={name === 'model' ? 'text' : 'date'}
          value={range[name]}
          onChange={({ target }) => {
            change({ [name]: target.value }, { replace: true });
          }}
        />
      )}
    </Field>
  );
  return (
    <div className={styles.page}>
      <p className={styles.note}>
        Stored calls keep the price that was used. Repricing computes the cost of the calls of one organization again,
        each by the price of its own day; costs that senders gave stay. A worker reads the whole range and rewrites
        columns, so choose the range as small as it may be.
      </p>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <OrgChoice
          value={range.org}
          error={errors.fields.org_id ?? null}
          onChange={(org) => {
            change({ org }, { replace: true });
          }}
        />
        {field('since', 'First day (UTC)', 'Calls that began on this day or later')}
        {field('until', 'Last day (UTC)', 'Calls that began on this day or earlier')}
        {field('model', 'Model', 'As requests name it. Empty: every model')}
        <div className={styles.actions}>
          <Button look="primary" type="submit" disabled={!isReady} busy={run.isPending}>
            {run.isPending ? 'Repricing …' : 'Reprice calls'}
          </Button>
        </div>
      </form>
      {errors.form !== null && <ErrorPanel error={run.error} what="the repricing" onRetry={submit} />}
      {run.data !== undefined && <Result result={run.data.data} />}
    </div>
  );
}

function Result({ result }: { result: Repriced }): ReactElement {
  const { spans, repriced, unknown, delta_usd, finished } = result;
  return (
    <section className={styles.section} role="status">
      <h2>Result</h2>
      <dl className={styles.facts}>
        <dt>Calls checked</dt>
        <dd>{count(spans)}</dd>
        <dt>Calls corrected</dt>
        <dd>{count(repriced)}</dd>
        <dt>Change of the total cost</dt>
        <dd>{moneyExact(delta_usd)}</dd>
        <dt>Calls left as they are</dt>
        <dd>{count(unknown)} (sampling did not keep what is needed to price them)</dd>
        {finished > 0 && (
          <>
            <dt>Calls of an interrupted run</dt>
            <dd>{count(finished)}, completed first</dd>
          </>
        )}
      </dl>
    </section>
  );
}
