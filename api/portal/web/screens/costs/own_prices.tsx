// The organization's own prices by model and day, with the built-in price of the same day.
import type { ReactElement } from 'react';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import numbers from '../../ui/number_table.module.css';
import styles from './costs.module.css';
import { useBuiltIn } from './price_api.ts';
import { type Price, priceId, priceWords, sortedPrices, stateOf } from './price_list.ts';

const STATES = { now: 'Applies now', later: 'Applies later', ended: 'Ended', replaced: 'Replaced by a newer one' };

interface OwnPricesProps {
  prices: readonly Price[];
  /** Null for somebody who may not change prices. */
  onEdit: ((price: Price) => void) | null;
  onDelete: (price: Price) => void;
}

/** The table. */
export function OwnPrices({ prices, onEdit, onDelete }: OwnPricesProps): ReactElement {
  const builtIn = useBuiltIn(prices.map(({ model }) => model));
  const today = new Date().toISOString().slice(0, 10);
  if (prices.length === 0)
    return (
      <p className={styles.note}>
        No own prices. Calls cost what their sender states, or what the built-in table says for the day of the call.
      </p>
    );
  const byModel = new Map(builtIn.data?.prices.map((one) => [one.model, one]));
  return (
    <>
      <p className={styles.note}>
        USD per million tokens. An own price precedes the built-in one
        {builtIn.data === undefined ? '' : ` (${builtIn.data.table}, today)`}; the last day of a price is the day before
        Until.
      </p>
      <div className={numbers.scroll} role="region" aria-label="Own prices" tabIndex={0}>
        <table className={numbers.table}>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col" className={numbers.words}>
                From
              </th>
              <th scope="col" className={numbers.words}>
                Until
              </th>
              <th scope="col">Input</th>
              <th scope="col">Output</th>
              <th scope="col">Cached input</th>
              <th scope="col">Built-in input, output</th>
              <th scope="col" className={numbers.words}>
                State
              </th>
              {onEdit !== null && <th scope="col">Change</th>}
            </tr>
          </thead>
          <tbody>
            {sortedPrices(prices).map((price) => {
              const found = byModel.get(price.model);
              return (
                <tr key={priceId(price)}>
                  <th scope="row" className={styles.name}>
                    {price.model}
                  </th>
                  <td className={cx(styles.date, numbers.words)}>{price.from ?? 'All days'}</td>
                  <td className={cx(styles.date, numbers.words)}>{price.until ?? '–'}</td>
                  <td>{priceWords(price.input_usd_per_mtok)}</td>
                  <td>{priceWords(price.output_usd_per_mtok)}</td>
                  <td>{priceWords(price.cached_input_usd_per_mtok)}</td>
                  <td title={found?.id ?? undefined}>
                    {found === undefined || found.id === null
                      ? 'None'
                      : `${priceWords(found.input_usd_per_mtok)}, ${priceWords(found.output_usd_per_mtok)}`}
                  </td>
                  <td className={numbers.words}>{STATES[stateOf(price, prices, today)]}</td>
                  {onEdit !== null && <Change price={price} onEdit={onEdit} onDelete={onDelete} />}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface ChangeProps {
  price: Price;
  onEdit: (price: Price) => void;
  onDelete: (price: Price) => void;
}

function Change({ price, onEdit, onDelete }: ChangeProps): ReactElement {
  const which = `price of ${price.model}${price.from === undefined ? '' : ` from ${price.from}`}`;
  return (
    <td>
      <span className={styles.buttons}>
        <Button
          look="quiet"
          aria-label={`Edit or end ${which}`}
          onClick={() => {
            onEdit(price);
          }}
        >
          Edit or end
        </Button>
        <Button
          look="quiet"
          icon="trash"
          hint={`Delete ${which}`}
          onClick={() => {
            onDelete(price);
          }}
        />
      </span>
    </td>
  );
}
