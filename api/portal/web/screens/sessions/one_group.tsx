// The frame of the page of one session or one user: its states while it loads and fails, and its actions.
import type { ReactElement, ReactNode } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './sessions.module.css';

/** Returns the id of the address, which becomes the title, and the addresses that the page links to. */
export function useOneGroup(): { org_id: string; id: string; root: string } {
  const { org_id } = useOrganization();
  const id = useRouteParams()('id');
  usePageTitle(id);
  return { org_id, id, root: `/o/${encodeURIComponent(org_id)}` };
}

interface OneGroupProps<T> {
  kind: 'session' | 'user';
  id: string;
  /** Address of the list of its traces, and the words of the link to it. */
  traces: { href: string; label: string };
  answer: { data: T | undefined; error: unknown; refetch: () => unknown };
  children: (data: T) => ReactNode;
}

/** The page. */
export function OneGroup<T>({ kind, id, traces, answer, children }: OneGroupProps<T>): ReactElement {
  const { data, error, refetch } = answer;
  const failed = error !== null && data === undefined;
  return (
    <div className={styles.page}>
      {failed ? (
        <ErrorPanel
          error={error}
          what={`the ${kind}`}
          onRetry={() => {
            void refetch();
          }}
        />
      ) : data === undefined ? (
        <Skeleton rows={12} height={20} />
      ) : (
        <>
          <div className={styles.actions}>
            <ButtonLink href={traces.href}>{traces.label}</ButtonLink>
            <CopyButton text={id} label={`Copy ${kind} id`} labelled />
          </div>
          {children(data)}
        </>
      )}
    </div>
  );
}
