// Compares two versions of a dataset, item by item.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type Dataset, type Item, itemsQuery } from './dataset_api.ts';
import { changedItems, type ItemPair } from './item_diff.ts';
import { writeItem } from './new_item.ts';

/** Items of a version that are compared. */
const COMPARED_MAX = 2000;
/** Comparisons that are shown at first, and more by a button. */
const SHOWN_STEP = 20;

/** Returns the items of a version once all of them are here, up to the maximum. */
function useAllItems(dataset_id: string) {
  const { org_id } = useOrganization();
  const query = useInfiniteQuery(itemsQuery(org_id, dataset_id));
  const items = useMemo(() => query.data?.pages.flatMap(({ data }) => data) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isError } = query;
  const isWhole = query.data !== undefined && (!hasNextPage || items.length >= COMPARED_MAX);
  useEffect(() => {
    if (query.data !== undefined && !isWhole && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [query.data, isWhole, isFetchingNextPage, fetchNextPage, isError]);
  return { items: isWhole ? items.slice(0, COMPARED_MAX) : null, error: query.error, retry: query.refetch };
}

export function VersionDiff({ left, right }: { left: Dataset; right: Dataset }): ReactElement {
  const [before, after] = [useAllItems(left.dataset_id), useAllItems(right.dataset_id)];
  const error = before.error ?? after.error;
  if (error !== null)
    return (
      <ErrorPanel
        error={error}
        what="the items"
        onRetry={() => {
          void before.retry();
          void after.retry();
        }}
      />
    );
  if (before.items === null || after.items === null) return <Skeleton rows={8} />;
  const isCut = Math.max(left.item_count, right.item_count) > COMPARED_MAX;
  return (
    <>
      {isCut && <p>The first {count(COMPARED_MAX)} items of each version are compared.</p>}
      <Differences left={before.items} right={after.items} sides={[sideOf(left), sideOf(right)]} />
    </>
  );
}

const sideOf = ({ version }: Dataset): string => `Version ${version}`;

interface DifferencesProps {
  left: readonly Item[];
  right: readonly Item[];
  sides: readonly [string, string];
}

function Differences({ left, right, sides }: DifferencesProps): ReactElement {
  const [shown, setShown] = useState(SHOWN_STEP);
  const pairs = useMemo(() => changedItems(left, right), [left, right]);
  if (pairs === null)
    return <EmptyState title="The versions differ too much">Hardly any item is the same in both.</EmptyState>;
  if (pairs.length === 0) return <EmptyState title="No item differs between these versions" />;
  const textOf = (items: readonly Item[], index: number | null): string => {
    const item = index === null ? undefined : items[index];
    return item === undefined ? '' : writeItem(item);
  };
  return (
    <>
      <p role="status">{summary(pairs)}</p>
      {pairs.slice(0, shown).map(({ left: a, right: b }) => (
        <DiffView
          key={`${String(a)} ${String(b)}`}
          title={titleOf({ left: a, right: b })}
          left={textOf(left, a)}
          right={textOf(right, b)}
          sides={sides}
        />
      ))}
      {pairs.length > shown && (
        <div>
          <Button
            onClick={() => {
              setShown(shown + SHOWN_STEP);
            }}
          >
            Show more of {count(pairs.length)} differences
          </Button>
        </div>
      )}
    </>
  );
}

function summary(pairs: readonly ItemPair[]): string {
  const removed = pairs.filter(({ right }) => right === null).length;
  const added = pairs.filter(({ left }) => left === null).length;
  const words: [number, string][] = [
    [pairs.length - removed - added, 'changed'],
    [added, 'added'],
    [removed, 'removed'],
  ];
  const shown = words.filter(([number]) => number > 0).map(([number, word]) => `${count(number)} ${word}`);
  return `Items: ${shown.join(', ')}`;
}

function titleOf({ left, right }: ItemPair): string {
  if (left === null) return `Item ${(right ?? 0) + 1}, added`;
  return right === null ? `Item ${left + 1}, removed` : `Item ${right + 1}, changed`;
}
