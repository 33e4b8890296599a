// An address that no page has.
import type { ReactElement } from 'react';
import styles from '../../shell/page.module.css';
import { ButtonLink } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { EmptyState } from '../../ui/empty_state.tsx';

/** Says that the page does not exist. `framed`: the frame around it has the landmarks and the h1. */
export default function NotFoundScreen({ framed = false }: { framed?: boolean }): ReactElement {
  const content = (
    <EmptyState title="No page has this address" action={<ButtonLink href="/">Go to the first page</ButtonLink>}>
      <code>{location.pathname}</code> is not a page of the portal, or it belongs to an organization that you are not a
      member of.
    </EmptyState>
  );
  if (framed) return <div className={styles.page}>{content}</div>;
  return (
    <main className={cx(styles.page, styles.outer)}>
      <h1>No such page</h1>
      {content}
    </main>
  );
}
