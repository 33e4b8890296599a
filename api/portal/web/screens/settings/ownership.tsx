// The owner of the organization, and the transfer of the ownership.
import { type ReactElement, useState } from 'react';
import { useOrganization, useSession } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import costs from '../costs/costs.module.css';
import { type Transfer, useActiveMembers, useOffer, useTransfer, useWithdraw } from './member_api.ts';
import { ConfirmDialog, Loaded, Section } from './parts.tsx';

const ENDED = {
  effective: 'The latest transfer was accepted.',
  expired: 'The latest transfer expired before it was accepted.',
  cancelled: 'The latest transfer was withdrawn or ended.',
} as const;

/** The section. */
export function Ownership(): ReactElement {
  const { can } = useOrganization();
  const state = useTransfer();
  const [open, setOpen] = useState<'offer' | 'withdraw' | null>(null);
  const close = (): void => {
    setOpen(null);
  };
  const transfer = state.data?.transfer ?? null;
  const isPending = transfer?.status === 'pending';
  return (
    <Section
      title="Ownership"
      change={{ permission: 'org:transfer', actions: ['transfer.request', 'transfer.accept', 'transfer.withdraw'] }}
      actions={
        can('org:transfer') &&
        state.data !== undefined && (
          <Button
            onClick={() => {
              setOpen(isPending ? 'withdraw' : 'offer');
            }}
          >
            {isPending ? 'Withdraw transfer' : 'Transfer ownership'}
          </Button>
        )
      }
    >
      <Loaded query={state} what="the transfer of ownership" rows={1}>
        {() => <TransferLine transfer={transfer} />}
      </Loaded>
      {open === 'offer' && <OfferDialog onClose={close} />}
      {open === 'withdraw' && transfer !== null && <WithdrawDialog transfer={transfer} onClose={close} />}
    </Section>
  );
}

function TransferLine({ transfer }: { transfer: Transfer | null }): ReactElement {
  if (transfer?.status === 'pending')
    return (
      <p>
        The ownership is offered to <strong>{oneLine(transfer.new_owner_user_id)}</strong>, who can accept until{' '}
        <Moment at={transfer.expires_at} form="full" />.
      </p>
    );
  return <p className={costs.note}>No transfer is pending. {transfer === null ? '' : ENDED[transfer.status]}</p>;
}

function WithdrawDialog({ transfer, onClose }: { transfer: Transfer; onClose: () => void }): ReactElement {
  const withdraw = useWithdraw(onClose);
  return (
    <ConfirmDialog
      title="Withdraw the transfer of ownership"
      action="Withdraw transfer"
      busy={withdraw.isPending}
      error={withdraw.error}
      onConfirm={() => {
        withdraw.mutate();
      }}
      onClose={onClose}
    >
      <p>{oneLine(transfer.new_owner_user_id)} can no longer accept the ownership. You stay the owner.</p>
    </ConfirmDialog>
  );
}

function OfferDialog({ onClose }: { onClose: () => void }): ReactElement {
  const { name } = useOrganization();
  const me = useSession().data?.user_id;
  const active = useActiveMembers();
  const [chosen, setChosen] = useState('');
  const [typed, setTyped] = useState('');
  const [token, setToken] = useState<string | null>(null);
  const offer = useOffer((made) => {
    if (made === null) onClose();
    else setToken(made);
  });
  if (token !== null) return <OfferLink token={token} onClose={onClose} />;
  const others = (active.data?.members ?? []).filter(({ user_id }) => user_id !== me);
  return (
    <ConfirmDialog
      title={`Transfer the ownership of ${oneLine(name)}`}
      action="Offer ownership"
      danger
      disabled={chosen === '' || typed.trim() !== name.trim()}
      busy={offer.isPending}
      error={offer.error}
      onConfirm={() => {
        offer.mutate(chosen);
      }}
      onClose={onClose}
    >
      <p>The new owner has 24 hours to accept. From then on the new owner is an owner, and you are an admin.</p>
      <Field label="New owner" hint={others.length === 0 ? 'Invite a member first' : 'An active member'}>
        {(control) => (
          <Select
            {...control}
            value={chosen}
            onChange={({ target }) => {
              setChosen(target.value);
            }}
          >
            <option value="">Choose a member</option>
            {others.map(({ user_id, email }) => (
              <option key={user_id} value={user_id}>
                {oneLine(email)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={`Type ${oneLine(name)} to confirm`}>
        {(control) => (
          <Input
            {...control}
            value={typed}
            onChange={({ target }) => {
              setTyped(target.value);
            }}
          />
        )}
      </Field>
    </ConfirmDialog>
  );
}

function OfferLink({ token, onClose }: { token: string; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  return (
    <SecretDialog
      title="Transfer of ownership"
      noun="link"
      secret={`${location.origin}/transfer#${org_id}.${token}`}
      onClose={onClose}
    >
      <p>
        The service may send no mail in development, so hand this link to the new owner. It can be accepted within 24
        hours, and it is not shown again.
      </p>
    </SecretDialog>
  );
}
