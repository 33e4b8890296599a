// The organizations of the service: the operator creates one, changes its plan, limits and owner, makes its first API
// key, and deletes it. The organization whose form is open stands in the address.
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, money, NONE } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Moment } from '../../ui/moment.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { type Org, orgsQuery } from './orgs_api.ts';
import { NewOrgDialog, OrgDialog } from './org_dialog.tsx';
import styles from './operator.module.css';
import { Waiting } from './waiting.tsx';

/** `org` names the organization whose form is open, `new` the form of a new one. */
const CODEC = codec({ org: text(), form: text() });
const idOf = ({ org_id }: Org): string => org_id;

/** The page. */
export default function OrgsPage(): ReactElement {
  const [{ org: opened, form }, change] = useSearchState(CODEC);
  const pages = useInfiniteQuery(orgsQuery);
  const orgs = pages.data?.pages.flatMap(({ data }) => data) ?? [];
  const total = pages.data?.pages[0]?.meta.total;
  usePageRequest('/admin/orgs');
  const close = (): void => {
    change({ org: '', form: '' });
  };
  const create = (): void => {
    change({ form: 'new' });
  };
  useKeys('Organizations', [{ keys: 'n', label: 'Create an organization', run: create }]);
  const org = orgs.find(({ org_id }) => org_id === opened);
  return (
    <div className={styles.list}>
      <div className={styles.tools}>
        <span className={styles.grow} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'organization' : 'organizations'}`}
        </span>
        <Button look="primary" icon="plus" keys="n" onClick={create}>
          Create organization
        </Button>
      </div>
      {pages.data === undefined ? (
        <Waiting query={pages} what="the organizations" rows={12} />
      ) : orgs.length === 0 ? (
        <div className={styles.page}>
          <EmptyState title="No organizations yet">Create one with its owner, then its first API key.</EmptyState>
        </div>
      ) : (
        <ListTable
          label="Organizations"
          noun="organization"
          address="operator/orgs"
          rows={orgs}
          rowKey={idOf}
          columns={columnsOf}
          onOpen={({ org_id }) => {
            change({ org: org_id });
          }}
          pages={pages}
          total={total}
        />
      )}
      {form === 'new' && (
        <NewOrgDialog
          onClose={close}
          onCreated={(org_id) => {
            change({ org: org_id, form: '' });
          }}
        />
      )}
      {org !== undefined && <OrgDialog key={org.org_id} org={org} onClose={close} />}
    </div>
  );
}

function columnsOf(narrow: boolean): Column<Org>[] {
  const name = ({ name: text_, org_id }: Org): ReactElement => (
    <span className={styles.name} title={`${text_} (${org_id})`}>
      {text_}
    </span>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Organization',
        width: 'minmax(0, 1fr)',
        cell: (org) => (
          <span className={styles.lines}>
            {name(org)}
            <span className={styles.quiet}>
              {org.plan_name} · {org.org_id}
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'name', head: 'Name', width: 'minmax(160px, 2fr)', cell: name },
    { id: 'id', head: 'Id', width: 'minmax(140px, 1fr)', cell: ({ org_id }) => <code>{org_id}</code> },
    { id: 'plan', head: 'Plan', width: '96px', cell: ({ plan_name }) => plan_name },
    { id: 'owner', head: 'Owner', width: 'minmax(160px, 1fr)', cell: ({ owner }) => owner.email },
    {
      id: 'overage',
      head: 'Overage budget',
      width: '128px',
      align: 'end',
      cell: ({ overage_budget_usd }) => (overage_budget_usd === null ? NONE : money(overage_budget_usd)),
    },
    {
      id: 'created',
      head: 'Created',
      width: '128px',
      cell: ({ created_at }) => <Moment at={created_at} form="ago" />,
    },
  ];
}
