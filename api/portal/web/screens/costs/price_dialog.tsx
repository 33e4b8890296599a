// The dialog of one price of the organization: model, days, amounts, with the built-in price of the
// same day beside them and what the price makes of calls that had none.
import { type ReactElement, useState } from 'react';
import { count, money, moneyExact, tokenFlow } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import styles from './costs.module.css';
import { formErrors } from './field_error.ts';
import { type PriceChange, useBuiltIn, useSavePrices } from './price_api.ts';
import { costAt, parseUsd, type Price, priceWords, type Unpriced } from './price_list.ts';
import { useSettled } from '../../lists/use_settled.ts';

const MODEL_LENGTH_MAX = 256;
const NOT_USD = 'Must be an amount in USD such as 2.50, at most 1,000,000';
const FIELDS = ['model', 'from', 'until', 'input_usd_per_mtok', 'output_usd_per_mtok', 'cached_input_usd_per_mtok'];

interface PriceDialogProps {
  /** The price to change; null for a new one. */
  former: Price | null;
  /** Model of a new price; empty: the dialog asks for it. */
  model: string;
  /** The calls of the model without a price, and the days that they are counted over. */
  unpriced: { calls: Unpriced; days: number } | null;
  onClose: () => void;
  onSaved: (change: PriceChange) => void;
}

interface Draft {
  model: string;
  from: string;
  until: string;
  input: string;
  output: string;
  cached: string;
}

const written = (usd: number | undefined): string => (usd === undefined ? '' : String(usd));
const draftOf = (former: Price | null, model: string): Draft => ({
  model: former?.model ?? model,
  from: former?.from ?? '',
  until: former?.until ?? '',
  input: written(former?.input_usd_per_mtok),
  output: written(former?.output_usd_per_mtok),
  cached: written(former?.cached_input_usd_per_mtok),
});

/** Returns the price of a draft; null while a field is missing or no amount. */
function priceOf({ model, from, until, ...typed }: Draft): Price | null {
  const [input, output, cached] = [parseUsd(typed.input), parseUsd(typed.output), parseUsd(typed.cached)];
  if (model.trim() === '' || input === null || input === undefined || output === null || output === undefined)
    return null;
  if (cached === undefined) return null;
  return {
    model: model.trim(),
    input_usd_per_mtok: input,
    output_usd_per_mtok: output,
    ...(cached === null ? {} : { cached_input_usd_per_mtok: cached }),
    ...(from === '' ? {} : { from }),
    ...(until === '' ? {} : { until }),
  };
}

/** The dialog. */
export function PriceDialog({ former, model, unpriced, onClose, onSaved }: PriceDialogProps): ReactElement {
  const [draft, setDraft] = useState(() => draftOf(former, model));
  const price = priceOf(draft);
  const save = useSavePrices((change) => {
    onClose();
    onSaved(change);
  });
  const submit = (): void => {
    if (price !== null && !save.isPending) save.mutate({ former, next: price });
  };
  return (
    <Dialog
      title={former !== null ? `Price of ${former.model}` : model === '' ? 'Add price' : `Set the price of ${model}`}
      form="wide"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={price === null} busy={save.isPending}>
            Save price
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <Fields
          draft={draft}
          asksModel={former === null && model === ''}
          error={save.error}
          onChange={(patch) => {
            setDraft({ ...draft, ...patch });
          }}
        />
        <BuiltIn draft={draft} />
        {unpriced !== null && price !== null && <Effect price={price} {...unpriced} />}
        <p className={styles.note}>
          The price applies to calls that arrive from now on, each by the price of its own day. Stored calls keep the
          price that was used until the operator reprices them.
        </p>
      </div>
    </Dialog>
  );
}

interface FieldsProps {
  draft: Draft;
  asksModel: boolean;
  error: unknown;
  onChange: (patch: Partial<Draft>) => void;
}

/** Marks the field that has the focus when the dialog opens. */
const opensHere = (field: HTMLInputElement | null): void => {
  field?.setAttribute('autofocus', '');
};

function Fields({ draft, asksModel, error, onChange }: FieldsProps): ReactElement {
  const { fields, form } = formErrors(error, FIELDS);
  const text = (name: keyof Draft) => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [name]: event.target.value });
    },
  });
  const amount = (name: 'input' | 'output' | 'cached', field: string) => ({
    error: parseUsd(draft[name]) === undefined ? NOT_USD : (fields[field] ?? null),
  });
  return (
    <>
      <div className={styles.columns}>
        <Field label="Model" hint="As requests name it, in any case" error={fields['model'] ?? null}>
          {(control) => (
            <Input
              {...control}
              ref={asksModel ? opensHere : null}
              required
              readOnly={!asksModel}
              maxLength={MODEL_LENGTH_MAX}
              {...text('model')}
            />
          )}
        </Field>
        <Field label="From" hint="First day (UTC); empty: all days" error={fields['from'] ?? null}>
          {(control) => <Input {...control} type="date" {...text('from')} />}
        </Field>
        <Field label="Until" hint="First day (UTC) without this price; empty: no end" error={fields['until'] ?? null}>
          {(control) => <Input {...control} type="date" {...text('until')} />}
        </Field>
      </div>
      <div className={styles.columns}>
        <Field label="Input" hint="USD per million tokens" {...amount('input', 'input_usd_per_mtok')}>
          {(control) => (
            <Input {...control} ref={asksModel ? null : opensHere} required inputMode="decimal" {...text('input')} />
          )}
        </Field>
        <Field label="Output" hint="USD per million tokens" {...amount('output', 'output_usd_per_mtok')}>
          {(control) => <Input {...control} required inputMode="decimal" {...text('output')} />}
        </Field>
        <Field
          label="Cached input"
          hint="USD per million tokens; empty: as input"
          {...amount('cached', 'cached_input_usd_per_mtok')}
        >
          {(control) => <Input {...control} inputMode="decimal" {...text('cached')} />}
        </Field>
      </div>
      {form !== null && (
        <p role="alert" className={styles.error}>
          {form}
        </p>
      )}
    </>
  );
}

function BuiltIn({ draft }: { draft: Draft }): ReactElement | null {
  const model = useSettled(draft.model.trim());
  const date = draft.from === '' ? undefined : draft.from;
  const { data } = useBuiltIn([model], date);
  const found = data?.prices.find((one) => one.model === model);
  if (found === undefined) return null;
  if (found.id === null) return <p>The built-in table ({data?.table}) has no price of this model.</p>;
  return (
    <p>
      Built-in on {data?.date}: {priceWords(found.input_usd_per_mtok)} input, {priceWords(found.output_usd_per_mtok)}{' '}
      output
      {found.cached_input_usd_per_mtok !== null && `, ${priceWords(found.cached_input_usd_per_mtok)} cached input`} (
      {found.id}
      {found.tiered && ', more for long inputs'}).
    </p>
  );
}

function Effect({ price, calls, days }: { price: Price; calls: Unpriced; days: number }): ReactElement {
  const usd = costAt(calls, price);
  return (
    <p role="status">
      At this price the {calls.calls === 1 ? 'one call' : `${count(calls.calls)} calls`} of the last {days} days (
      {tokenFlow(calls.input_tokens, calls.output_tokens)} tokens) would have cost{' '}
      <strong title={moneyExact(usd)}>{money(usd)}</strong>, without regard to cached tokens.
    </p>
  );
}
