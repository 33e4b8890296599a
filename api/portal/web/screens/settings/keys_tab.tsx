// The API keys of the organization: made, limited, rotated and revoked.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { useKeys as useShortcuts } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import { dayWords, exactAmount, WORDS } from '../costs/amounts.ts';
import costs from '../costs/costs.module.css';
import { type ApiKey, KEYS_MAX, useKeys } from '../costs/key_api.ts';
import { KEY_STATUS } from '../costs/key_budgets.tsx';
import { KeyDialog } from '../costs/key_dialog.tsx';
import { scopeWords } from './key_scopes.ts';
import { NewKeyDialog } from './new_key_dialog.tsx';
import { Loaded, Section } from './parts.tsx';
import { RevokeDialog, RotateDialog } from './rotate_dialog.tsx';

type Open = 'new' | { act: 'limit' | 'rotate' | 'revoke'; key: ApiKey } | null;

/** The tab. */
export default function KeysTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const list = useKeys();
  const [open, setOpen] = useState<Open>(null);
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/api-keys?limit=${KEYS_MAX}`);
  const mayChange = can('api_keys:write');
  const create = (): void => {
    setOpen('new');
  };
  return (
    <Section
      title="API keys"
      change={{ permission: 'api_keys:write', actions: ['api_key.create', 'api_key.update', 'api_key.revoke'] }}
      actions={mayChange && <CreateButton onCreate={create} />}
    >
      <p className={costs.note}>
        Programs log in with keys. A key has its scopes and at most the permissions of the member to whom it belongs.
        Its text is shown once, when it is created; afterwards the list shows how it begins.
      </p>
      <Loaded query={list} what="the API keys">
        {({ keys, total }) =>
          keys.length === 0 ? (
            <EmptyState
              title="No API key yet"
              action={
                mayChange && (
                  <Button look="primary" icon="key" onClick={create}>
                    Create key
                  </Button>
                )
              }
            >
              Programs need a key to send events and to read.
            </EmptyState>
          ) : (
            <>
              <KeyTable keys={keys} onOpen={mayChange ? setOpen : null} />
              {total > keys.length && (
                <p className={costs.note}>
                  The newest {count(keys.length)} of {count(total)} keys are shown.
                </p>
              )}
            </>
          )
        }
      </Loaded>
      <OpenDialog
        open={open}
        onClose={() => {
          setOpen(null);
        }}
      />
    </Section>
  );
}

function CreateButton({ onCreate }: { onCreate: () => void }): ReactElement {
  useShortcuts('API keys', [{ keys: 'n', label: 'Create an API key', run: onCreate }]);
  return (
    <Button look="primary" icon="plus" keys="n" onClick={onCreate}>
      Create key
    </Button>
  );
}

function OpenDialog({ open, onClose }: { open: Open; onClose: () => void }): ReactElement | null {
  if (open === null) return null;
  if (open === 'new') return <NewKeyDialog onClose={onClose} />;
  const { act, key } = open;
  if (act === 'limit') return <KeyDialog apiKey={key} onClose={onClose} />;
  if (act === 'rotate') return <RotateDialog apiKey={key} onClose={onClose} />;
  return <RevokeDialog apiKey={key} onClose={onClose} />;
}

interface KeyTableProps {
  keys: readonly ApiKey[];
  /** Null for somebody who may not change keys. */
  onOpen: ((open: Open) => void) | null;
}

function KeyTable({ keys, onOpen }: KeyTableProps): ReactElement {
  return (
    <div className={numbers.scroll} role="region" aria-label="API keys" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" className={numbers.words}>
              Scopes
            </th>
            <th scope="col" className={numbers.words}>
              Status
            </th>
            <th scope="col" className={numbers.words}>
              Limits
            </th>
            <th scope="col">Used in its period</th>
            <th scope="col" className={numbers.words}>
              Belongs to
            </th>
            <th scope="col">Created</th>
            {onOpen !== null && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <Row key={key.id} apiKey={key} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ apiKey, onOpen }: { apiKey: ApiKey; onOpen: KeyTableProps['onOpen'] }): ReactElement {
  const { name, key_prefix, scopes, status, expires_at, use, created_by, created_at } = apiKey;
  return (
    <tr>
      <th scope="row" className={costs.name}>
        {oneLine(name)} <code className={costs.small}>{key_prefix}…</code>
      </th>
      <td title={scopes.join(', ')} className={numbers.words}>
        {scopeWords(scopes)}
      </td>
      <td className={numbers.words}>
        {KEY_STATUS[status]}
        {expires_at !== null && status !== 'expired' && ` until ${dayWords(expires_at)}`}
      </td>
      <td className={numbers.words}>{limitWords(apiKey)}</td>
      <td
        title={
          use === null ? undefined : `${exactAmount('tokens', use.tokens)}, ${exactAmount('cost_usd', use.cost_usd)}`
        }
      >
        {use === null ? '–' : `${WORDS.tokens.short(use.tokens)} tokens, ${WORDS.cost_usd.short(use.cost_usd)}`}
      </td>
      <td className={numbers.words}>{created_by === null ? 'The operator' : oneLine(created_by)}</td>
      <td>
        <Moment at={created_at} form="ago" />
      </td>
      {onOpen !== null && (
        <td>
          <KeyMenu apiKey={apiKey} onOpen={onOpen} />
        </td>
      )}
    </tr>
  );
}

function limitWords({ models, requests_per_minute, tokens_per_minute, budget, capture }: ApiKey): string {
  const words = [
    models === null ? '' : models.map(oneLine).join(', '),
    requests_per_minute === null ? '' : `${count(requests_per_minute)} requests a minute`,
    tokens_per_minute === null ? '' : `${count(tokens_per_minute)} tokens a minute`,
    budget === null ? '' : `${WORDS[budget.resource].short(budget.hard_limit)} a ${budget.period}`,
    capture === 'usage' ? 'stores usage alone' : '',
  ].filter((one) => one !== '');
  return words.length === 0 ? 'None' : words.join('; ');
}

function KeyMenu({ apiKey, onOpen }: { apiKey: ApiKey; onOpen: (open: Open) => void }): ReactElement {
  const item = (label: string, act: 'limit' | 'rotate' | 'revoke') => ({
    label,
    danger: act === 'revoke',
    onSelect: () => {
      onOpen({ act, key: apiKey });
    },
  });
  return (
    <Menu
      look="quiet"
      align="end"
      icon="more"
      label={`Change ${oneLine(apiKey.name)}`}
      items={[item('Set limits', 'limit'), item('Rotate key', 'rotate'), item('Revoke key', 'revoke')]}
    />
  );
}
