// The models whose calls cost 0 because no price is known.
import type { ReactElement } from 'react';
import { count, exact, tokenFlow } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import styles from './costs.module.css';
import type { Unpriced } from './price_list.ts';

interface UnpricedModelsProps {
  models: readonly Unpriced[];
  days: number;
  onSet: ((model: string) => void) | null;
}

/** The table, or the line that nothing is missing. */
export function UnpricedModels({ models, days, onSet }: UnpricedModelsProps): ReactElement {
  if (models.length === 0)
    return <p className={styles.note}>Every model that was called in the last {days} days has a price.</p>;
  return (
    <>
      <p className={styles.note}>
        Calls of these models in the last {days} days count with a cost of 0, because no price is known.
      </p>
      <div className={numbers.scroll} role="region" aria-label="Models without a price" tabIndex={0}>
        <table className={numbers.table}>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">Calls</th>
              <th scope="col">Tokens</th>
              <th scope="col">Last call</th>
              {onSet !== null && <th scope="col">Change</th>}
            </tr>
          </thead>
          <tbody>
            {models.map(({ model, calls, input_tokens, output_tokens, last_call_at }) => (
              <tr key={model}>
                <th scope="row" className={styles.name}>
                  {model}
                </th>
                <td>{count(calls)}</td>
                <td title={`${exact(input_tokens)} input, ${exact(output_tokens)} output`}>
                  {tokenFlow(input_tokens, output_tokens)}
                </td>
                <td>
                  <Moment at={last_call_at} form="ago" />
                </td>
                {onSet !== null && (
                  <td>
                    <Button
                      aria-label={`Set price of ${model}`}
                      onClick={() => {
                        onSet(model);
                      }}
                    >
                      Set price
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
