// The page behind the link of a mail: it says what is offered, logs the person in where needed, and accepts.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { RequestError } from '../../client/error.ts';
import { refreshSession, refreshSessionUntil, useSession } from '../../client/session.ts';
import { endSession } from '../../shell/end_session.ts';
import pages from '../../shell/page.module.css';
import { useShownTitle } from '../../shell/page_title.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { Mark } from '../login/brand_mark.tsx';
import login from '../login/login.module.css';
import { LoginWays } from '../login/login_ways.tsx';
import type { Offer } from './offer.ts';
import { forgetOffer, takeOffer } from './take_offer.ts';

interface AcceptScreenProps {
  page: 'invite' | 'transfer';
  title: string;
  action: string;
  explain: (of: { org_id: string; who: string }) => string;
  accept: (offer: Offer) => Promise<unknown>;
  /** Says that it is accepted. */
  done: (org_id: string) => string;
}

/** The page. */
export function AcceptScreen(props: AcceptScreenProps): ReactElement {
  const { page, title } = props;
  useShownTitle(title);
  const [offer] = useState(() => takeOffer(page));
  return (
    <main id="main" className={cx(pages.page, pages.outer)}>
      <p className={login.brand}>
        <Mark />
        Millrace
      </p>
      <div className={login.card}>
        <h1>{title}</h1>
        {offer === null ? (
          <p className={login.text}>This link is not complete. Open it from the mail again, or ask for another one.</p>
        ) : (
          <Accept {...props} offer={offer} />
        )}
      </div>
    </main>
  );
}

function Accept(props: AcceptScreenProps & { offer: Offer }): ReactElement {
  const { page, action, explain, accept, done, offer } = props;
  const session = useSession();
  const change = useMutation({
    mutationFn: () => accept(offer),
    onSuccess: async () => {
      forgetOffer(page);
      await refreshSessionUntil(({ orgs }) => {
        const joined = orgs.find(({ org_id }) => org_id === offer.org_id);
        return joined !== undefined && (page === 'invite' || joined.role === 'owner');
      });
      toast({ text: done(offer.org_id) });
      navigate(`/o/${encodeURIComponent(offer.org_id)}`, { replace: true });
    },
  });
  if (session.data === undefined) {
    if (session.error === null) return <Skeleton rows={3} />;
    if (session.error instanceof RequestError && session.error.status === 401)
      return (
        <>
          <p className={login.text}>Log in first, with the address that the mail was sent to.</p>
          <LoginWays to={`/${page}`} onDone={() => void refreshSession()} />
        </>
      );
    return <ErrorPanel error={session.error} what="your session" onRetry={() => void session.refetch()} />;
  }
  const { email, user_id } = session.data;
  return (
    <>
      <p className={login.text}>{explain({ org_id: offer.org_id, who: email ?? user_id })}</p>
      {change.error !== null && <ErrorPanel error={change.error} what="the offer" />}
      <div className={login.actions}>
        <Button
          look="primary"
          busy={change.isPending}
          onClick={() => {
            change.mutate();
          }}
        >
          {action}
        </Button>
        <Button onClick={endSession}>Log in as somebody else</Button>
      </div>
    </>
  );
}
