// Prices: models that have none first, then the organization's own prices with the built-in ones
// beside them, and how stored calls are repriced.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import panels from '../home/home.module.css';
import styles from './costs.module.css';
import { costsUrl } from './costs_url.ts';
import { OwnPrices } from './own_prices.tsx';
import { type PriceChange, usePrices, useSavePrices, useUnpriced } from './price_api.ts';
import { PriceDialog } from './price_dialog.tsx';
import type { Price } from './price_list.ts';
import { Repricing } from './repricing.tsx';
import { UnpricedModels } from './unpriced_models.tsx';

/** Most days of GET /v1/cost/unpriced. */
const DAYS_MAX = 90;

interface Open {
  former: Price | null;
  model: string;
}

/** The tab. */
export default function PricesTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const [state] = useSearchState(costsUrl);
  const days = Math.min(DAYS_MAX, state.days);
  const prices = usePrices();
  const unpriced = useUnpriced(days);
  const [open, setOpen] = useState<Open | null>(null);
  const [saved, setSaved] = useState<string | null>(null);
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/prices`);
  const mayEdit = can('budgets:write');
  const remove = useRemovePrice();
  const setPrice = (model: string): void => {
    setOpen({ former: null, model });
  };
  const edit = (price: Price): void => {
    setOpen({ former: price, model: price.model });
  };
  const calls = open === null ? undefined : unpriced.data?.find(({ model }) => model === open.model);
  return (
    <div className={styles.tab}>
      <section className={panels.section}>
        <h2>Models without a price</h2>
        <Panel query={unpriced} what="the models without a price">
          {(data) => <UnpricedModels models={data} days={days} onSet={mayEdit ? setPrice : null} />}
        </Panel>
      </section>
      <section className={panels.section}>
        <div className={styles.head}>
          <h2>Own prices</h2>
          {mayEdit && (
            <Button
              icon="plus"
              onClick={() => {
                setPrice('');
              }}
            >
              Add price
            </Button>
          )}
        </div>
        <Panel query={prices} what="the prices">
          {(data) => <OwnPrices prices={data} onEdit={mayEdit ? edit : null} onDelete={remove} />}
        </Panel>
      </section>
      <Repricing model={saved} />
      {open !== null && (
        <PriceDialog
          key={`${open.model} ${open.former?.from ?? ''}`}
          former={open.former}
          model={open.model}
          unpriced={calls === undefined ? null : { calls, days }}
          onClose={() => {
            setOpen(null);
          }}
          onSaved={({ next }) => {
            setSaved(next?.model ?? null);
            toast({ text: `Saved the price of ${next?.model ?? 'the model'}. It applies to calls from now on.` });
          }}
        />
      )}
    </div>
  );
}

/** Returns the function that deletes a price; the message afterwards offers to restore it. */
function useRemovePrice(): (price: Price) => void {
  const save = useSavePrices(() => undefined);
  const fail = (error: Error): void => {
    toast({ text: `The list of prices was not changed: ${error.message}`, tone: 'error' });
  };
  const change = (one: PriceChange, onSuccess: () => void): void => {
    save.mutate(one, { onSuccess, onError: fail });
  };
  return (price) => {
    const restore = (): void => {
      change({ former: null, next: price }, () => {
        toast({ text: `Restored the price of ${price.model}.` });
      });
    };
    change({ former: price, next: null }, () => {
      toast({ text: `Deleted the price of ${price.model}.`, action: { label: 'Undo', run: restore } });
    });
  };
}

interface PanelProps<T> {
  query: { data: T | undefined; error: Error | null; refetch: () => Promise<unknown> };
  what: string;
  children: (data: T) => ReactElement;
}

function Panel<T>({ query, what, children }: PanelProps<T>): ReactElement {
  if (query.data !== undefined) return children(query.data);
  if (query.error === null) return <Skeleton rows={4} height={20} />;
  return (
    <ErrorPanel
      error={query.error}
      what={what}
      onRetry={() => {
        void query.refetch();
      }}
    />
  );
}
