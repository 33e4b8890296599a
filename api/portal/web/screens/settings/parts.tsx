// Parts that the tabs of the settings share: a section that says who may change it, the state of its
// read, a dialog that confirms a change, and the pages of a long list.
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { auditLink } from '../audit/audit_link.ts';
import costs from '../costs/costs.module.css';
import panels from '../home/home.module.css';
import { changeError, rolesWords, usePermissions } from './settings_api.ts';

interface SectionProps {
  title: string;
  /** Permissions that change what the section shows, what each allows, and the actions of its lines in the audit log. */
  change?: {
    permission: string;
    words?: string;
    also?: { permission: string; words: string };
    actions: readonly string[];
  };
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A section with its heading, and a line that says who may change it. */
export function Section({ title, change, actions, children }: SectionProps): ReactElement {
  return (
    <section className={panels.section} aria-label={title}>
      <div className={costs.head}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
      {change !== undefined && <WhoMayChange {...change} />}
    </section>
  );
}

function WhoMayChange(change: NonNullable<SectionProps['change']>): ReactElement {
  const { org_id, can } = useOrganization();
  const permissions = usePermissions();
  const { permission, words = 'change this', also, actions } = change;
  const sentences = [{ permission, words }, ...(also === undefined ? [] : [also])].flatMap((one) => {
    const roles = rolesWords(permissions.data, one.permission);
    return roles === null ? [] : [`${roles.charAt(0).toUpperCase()}${roles.slice(1)} may ${one.words}. `];
  });
  return (
    <p className={costs.small}>
      {sentences.join('')}
      {can('audit:view') &&
        actions.map((action, index) => (
          <span key={action}>
            {index > 0 && ' · '}
            <Link href={auditLink(org_id, action).href}>Audit lines of {action}</Link>
          </span>
        ))}
    </p>
  );
}

interface LoadedProps<T> {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  /** Name of what is read, for example "the members". */
  what: string;
  rows?: number;
  children: (data: T) => ReactNode;
}

/** The content of a read; a skeleton while it loads, and its error in its place. */
export function Loaded<T>({ query, what, rows = 4, children }: LoadedProps<T>): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.error === null) return <Skeleton rows={rows} height={20} />;
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

interface ConfirmProps {
  title: string;
  /** The verb and its object on the button. */
  action: string;
  danger?: boolean;
  disabled?: boolean;
  busy: boolean;
  error: unknown;
  children: ReactNode;
  form?: 'box' | 'wide';
  onConfirm: () => void;
  onClose: () => void;
}

/** A dialog with one action, which says why the action failed. */
export function ConfirmDialog(props: ConfirmProps): ReactElement {
  const { title, action, danger = false, disabled = false, busy, error, children, form = 'box' } = props;
  const { onConfirm, onClose } = props;
  const refused = changeError(error);
  return (
    <Dialog
      title={title}
      form={form}
      onClose={onClose}
      onSubmit={() => {
        if (!busy && !disabled) onConfirm();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look={danger ? 'danger' : 'primary'} type="submit" keys="Ctrl+Enter" disabled={disabled} busy={busy}>
            {action}
          </Button>
        </>
      }
    >
      <div className={costs.form}>
        {children}
        {refused !== null && (
          <p role="alert" className={costs.error}>
            {refused}
          </p>
        )}
      </div>
    </Dialog>
  );
}

interface PagerProps {
  total: number;
  offset: number;
  limit: number;
  onOffset: (offset: number) => void;
}

/** Buttons of a list that is longer than one page; nothing for a list that is not. */
export function Pager({ total, offset, limit, onOffset }: PagerProps): ReactElement | null {
  if (total <= limit && offset === 0) return null;
  return (
    <div className={costs.line}>
      <span className={costs.grow}>
        {count(Math.min(offset + 1, total))} to {count(Math.min(offset + limit, total))} of {count(total)}
      </span>
      <Button
        icon="chevron-left"
        disabled={offset === 0}
        onClick={() => {
          onOffset(Math.max(0, offset - limit));
        }}
      >
        Previous
      </Button>
      <Button
        icon="chevron-right"
        disabled={offset + limit >= total}
        onClick={() => {
          onOffset(offset + limit);
        }}
      >
        Next
      </Button>
    </div>
  );
}
