// The list of datasets: one row a name, with its newest version.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Name } from '../../trace/name.tsx';
import styles from '../sessions/sessions.module.css';
import { type Dataset, datasetPath, datasetsQuery } from './dataset_api.ts';

const NewDialog = deferred(() => import('./new_dialog.tsx'));

/** A dataset by its newest version. */
interface Row {
  newest: Dataset;
  versions: number;
}

/** Returns one row a name; the records come newest first. */
function rowsOf(records: readonly Dataset[]): Row[] {
  const rows = new Map<string, Row>();
  for (const record of records) {
    const row = rows.get(record.name);
    if (row === undefined) rows.set(record.name, { newest: record, versions: 1 });
    else row.versions += 1;
  }
  return [...rows.values()];
}

const nameOf = ({ newest }: Row): string => newest.name;

/** The page. */
export default function DatasetsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const pages = useInfiniteQuery(datasetsQuery(org_id));
  const rows = useMemo(() => rowsOf(pages.data?.pages.flatMap(({ data }) => data) ?? []), [pages.data]);
  const [isMaking, setMaking] = useState(false);
  usePageRequest('/v1/datasets');
  const make = (): void => {
    setMaking(true);
  };
  const mayWrite = can('datasets:write');
  const hrefOf = ({ newest }: Row): string => datasetPath(org_id, newest.dataset_id);
  useKeys('Datasets', mayWrite ? [{ keys: 'n', label: 'Create a dataset', run: make }] : []);
  return (
    <div className={styles.screen}>
      <div className={styles.tools}>
        <span className={styles.total} role="status">
          {pages.data === undefined
            ? ''
            : `${count(rows.length)}${pages.hasNextPage ? '+' : ''} ${rows.length === 1 ? 'dataset' : 'datasets'}`}
        </span>
        {mayWrite && (
          <Button look="primary" icon="plus" keys="n" hint="Create a dataset" onClick={make}>
            Create dataset
          </Button>
        )}
      </div>
      {pages.error !== null && pages.data === undefined ? (
        <div className={styles.state}>
          <ErrorPanel error={pages.error} what="the datasets" onRetry={() => void pages.refetch()} />
        </div>
      ) : pages.data !== undefined && rows.length === 0 ? (
        <div className={styles.state}>
          <NoDatasets org_id={org_id} />
        </div>
      ) : (
        <ListTable
          label="Datasets"
          noun="dataset"
          address="datasets"
          rows={rows}
          rowKey={nameOf}
          columns={(narrow) => columnsOf(hrefOf, !pages.hasNextPage, narrow)}
          hrefOf={hrefOf}
          pages={pages}
          loading={pages.isPending}
          twoLines={false}
        />
      )}
      {isMaking && (
        <NewDialog
          onClose={() => {
            setMaking(false);
          }}
        />
      )}
    </div>
  );
}

function NoDatasets({ org_id }: { org_id: string }): ReactElement {
  return (
    <EmptyState
      title="No datasets yet"
      action={
        <ButtonLink href={`/o/${encodeURIComponent(org_id)}/traces?outcome=error`}>Show failed traces</ButtonLink>
      }
    >
      A dataset holds inputs and what a good answer to each contains. Select traces in the list with <kbd>x</kbd> and
      press <kbd>d</kbd> to make one of them.
    </EmptyState>
  );
}

function columnsOf(hrefOf: (row: Row) => string, isWhole: boolean, narrow: boolean): Column<Row>[] {
  const name: Column<Row> = {
    id: 'name',
    head: 'Name',
    width: narrow ? 'minmax(120px, 1fr)' : 'minmax(160px, 3fr)',
    cell: (row) => (
      <Link href={hrefOf(row)} className={styles.name}>
        <Name>{row.newest.name}</Name>
      </Link>
    ),
  };
  const items: Column<Row> = {
    id: 'items',
    head: 'Items',
    width: '72px',
    align: 'end',
    cell: ({ newest }) => count(newest.item_count),
  };
  if (narrow) return [name, items];
  return [
    name,
    {
      id: 'version',
      head: 'Newest version',
      width: 'minmax(120px, 1fr)',
      cell: ({ newest }) => <Name>{newest.version}</Name>,
    },
    {
      id: 'versions',
      head: 'Versions',
      width: '88px',
      align: 'end',
      cell: ({ versions }) => `${count(versions)}${isWhole ? '' : '+'}`,
    },
    items,
    {
      id: 'changed',
      head: 'Last version',
      width: 'minmax(120px, 1fr)',
      cell: ({ newest }) => <Moment at={newest.created_at} form="ago" />,
    },
  ];
}
