// One version of a dataset: its items in a windowed table with the open one beside it, or what differs
// from another version. Changes of items are collected, and saving them makes the next version.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { useHasPage } from '../../shell/pages_context.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { count } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Select } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import styles from '../compare/compare.module.css';
import { GrantLink } from '../settings/grant_link.tsx';
import {
  type Dataset,
  datasetPath,
  datasetQuery,
  itemsQuery,
  makeVersion,
  rereadDatasets,
  versionsQuery,
} from './dataset_api.ts';
import { changesOf, countDrafts, type Drafts, NO_DRAFTS } from './drafts.ts';
import { ItemTable } from './item_table.tsx';
import { VersionDiff } from './version_diff.tsx';

const DeleteDialog = deferred(() => import('./delete_dialog.tsx'));

const datasetUrl = codec({ against: text() });

/** The page. */
export default function DatasetScreen(): ReactElement {
  const { org_id } = useOrganization();
  const dataset_id = useRouteParams()('dataset_id');
  const query = useQuery(datasetQuery(org_id, dataset_id));
  const dataset = query.data?.data;
  usePageTitle(dataset === undefined ? null : oneLine(dataset.name));
  usePageRequest(`/v1/datasets/${encodeURIComponent(dataset_id)}/items`);
  if (dataset !== undefined) return <Version key={dataset_id} dataset={dataset} />;
  if (!query.isError)
    return (
      <div className={styles.failure}>
        <Skeleton rows={16} />
      </div>
    );
  return (
    <div className={styles.failure}>
      {query.error instanceof RequestError && query.error.status === 404 ? (
        <EmptyState
          title="There is no such dataset"
          action={<ButtonLink href={`/o/${encodeURIComponent(org_id)}/datasets`}>Show the list of datasets</ButtonLink>}
        >
          {query.error.detail} It may have been deleted.
        </EmptyState>
      ) : (
        <ErrorPanel error={query.error} what="the dataset" onRetry={() => void query.refetch()} />
      )}
    </div>
  );
}

function Version({ dataset }: { dataset: Dataset }): ReactElement {
  const { org_id } = useOrganization();
  const [url, change] = useSearchState(datasetUrl);
  const [drafts, setDrafts] = useState(NO_DRAFTS);
  const versions = useQuery(versionsQuery(org_id, dataset.name));
  const known = versions.data?.data ?? [dataset];
  const against = known.find(({ dataset_id }) => dataset_id === url.against);
  return (
    <div className={styles.screen}>
      <Head
        dataset={dataset}
        versions={known}
        against={against}
        onAgainst={(id) => {
          change({ against: id });
        }}
      />
      {against === undefined ? (
        <Items dataset={dataset} drafts={drafts} onDrafts={setDrafts} />
      ) : (
        <div className={styles.panel}>
          <VersionDiff left={against} right={dataset} />
        </div>
      )}
      {countDrafts(drafts) > 0 && <SaveBar dataset={dataset} drafts={drafts} onDrafts={setDrafts} />}
    </div>
  );
}

interface HeadProps {
  dataset: Dataset;
  versions: readonly Dataset[];
  against: Dataset | undefined;
  onAgainst: (dataset_id: string) => void;
}

function Head({ dataset, versions, against, onAgainst }: HeadProps): ReactElement {
  const { org_id, can } = useOrganization();
  const hasPage = useHasPage();
  const others = versions.filter(({ dataset_id }) => dataset_id !== dataset.dataset_id);
  const option = ({ dataset_id, version }: Dataset): ReactElement => (
    <option key={dataset_id} value={dataset_id}>
      {oneLine(version)}
    </option>
  );
  return (
    <header className={styles.head}>
      <div className={styles.traces}>
        <label className={styles.trace}>
          Version
          <Select
            value={dataset.dataset_id}
            onChange={(event) => {
              navigate(datasetPath(org_id, event.currentTarget.value));
            }}
          >
            {versions.some(({ dataset_id }) => dataset_id === dataset.dataset_id) ? null : option(dataset)}
            {versions.map(option)}
          </Select>
        </label>
        {others.length > 0 && (
          <label className={styles.trace}>
            Differences from
            <Select
              value={against?.dataset_id ?? ''}
              onChange={(event) => {
                onAgainst(event.currentTarget.value);
              }}
            >
              <option value="">No other version</option>
              {others.map(option)}
            </Select>
          </label>
        )}
        <span className={styles.quiet}>
          {count(dataset.item_count)} {dataset.item_count === 1 ? 'item' : 'items'}, made{' '}
          <Moment at={dataset.created_at} form="ago" />
        </span>
        {hasPage('/evals') && can('judges:run') && (
          <ButtonLink
            href={`/o/${encodeURIComponent(org_id)}/evals?${new URLSearchParams({ dataset_id: dataset.dataset_id, new: '1' }).toString()}`}
            icon="play"
          >
            Run dataset
          </ButtonLink>
        )}
        <GrantLink type="dataset" id={dataset.dataset_id} />
        {can('datasets:write') && <DeleteButton dataset={dataset} next={others[0]} />}
      </div>
    </header>
  );
}

function DeleteButton({ dataset, next }: { dataset: Dataset; next: Dataset | undefined }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        look="quiet"
        icon="trash"
        onClick={() => {
          setOpen(true);
        }}
      >
        Delete version
      </Button>
      {isOpen && (
        <DeleteDialog
          dataset={dataset}
          next={next}
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </>
  );
}

interface ItemsProps {
  dataset: Dataset;
  drafts: Drafts;
  onDrafts: (drafts: Drafts) => void;
}

function Items({ dataset, drafts, onDrafts }: ItemsProps): ReactElement {
  const { org_id } = useOrganization();
  const pages = useInfiniteQuery(itemsQuery(org_id, dataset.dataset_id));
  const items = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  if (pages.error !== null && items.length === 0)
    return (
      <div className={styles.failure}>
        <ErrorPanel error={pages.error} what="the items" onRetry={() => void pages.refetch()} />
      </div>
    );
  return (
    <ItemTable
      items={items}
      total={dataset.item_count}
      isLoading={pages.isFetching}
      drafts={drafts}
      onDrafts={onDrafts}
      onNearEnd={() => {
        if (pages.hasNextPage && !pages.isFetchingNextPage && pages.error === null) void pages.fetchNextPage();
      }}
    />
  );
}

/** The bar below the items while changes are not saved. */
function SaveBar({ dataset, drafts, onDrafts }: ItemsProps): ReactElement {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ drafts, id: randomId() });
  // Other changes are another request.
  if (key.drafts !== drafts) setKey({ drafts, id: randomId() });
  const save = useMutation({
    mutationFn: () => makeVersion(org_id, dataset.dataset_id, changesOf(drafts), key.id),
    onSuccess: ({ data }) => {
      void rereadDatasets(queries, org_id);
      toast({ text: `Saved version ${oneLine(data.version)} of ${oneLine(data.name)}.` });
      const query = new URLSearchParams({ against: dataset.dataset_id }).toString();
      onDrafts(NO_DRAFTS);
      navigate(`${datasetPath(org_id, data.dataset_id)}?${query}`);
    },
  });
  const changes = countDrafts(drafts);
  return (
    <div className={styles.tools} role="region" aria-label="Changes">
      <span role="status">
        {count(changes)} {changes === 1 ? 'change is' : 'changes are'} not saved.
        {save.error !== null && ` ${save.error instanceof RequestError ? save.error.detail : save.error.message}`}
      </span>
      <span>
        <Button
          look="quiet"
          onClick={() => {
            onDrafts(NO_DRAFTS);
          }}
        >
          Discard changes
        </Button>{' '}
        <Button
          look="primary"
          busy={save.isPending}
          onClick={() => {
            save.mutate();
          }}
        >
          Save as a new version
        </Button>
      </span>
    </div>
  );
}
