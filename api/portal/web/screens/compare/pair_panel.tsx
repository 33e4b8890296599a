// The panel of an aligned pair: its figures on both sides, and what differs between its texts.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { count, duration, money, NONE } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { KindMark } from '../../ui/marks.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import type { Alignment } from '../../trace/compare/align.ts';
import { stateOf } from '../../trace/compare/compared_rows.ts';
import { KIND_WORDS, Name, shownName } from '../../trace/name.tsx';
import { kindOf, modelOf, nameOf, outcomeOf, type Tree } from '../../trace/model/tree.ts';
import { type SpanDetail, spanQuery, type TextSide } from '../trace/trace_api.ts';
import { loadingWords, NoTexts, useWholeText } from '../trace/whole_texts.tsx';
import { STATE_WORDS, type Trees } from './aligned_rows.tsx';
import { SIDES } from './compare_head.tsx';
import styles from './compare.module.css';

interface PairPanelProps {
  alignment: Alignment;
  trees: Trees;
  row: number;
  /** Ids of both traces. */
  ids: readonly [left: string, right: string];
}

export function PairPanel({ alignment, trees, row, ids }: PairPanelProps): ReactElement {
  const spans = [alignment.left[row] ?? -1, alignment.right[row] ?? -1] as const;
  const [a, b] = spans;
  const [tree, span] = a >= 0 ? [trees.left, a] : [trees.right, b];
  const [kind, name] = [kindOf(tree, span), shownName(nameOf(tree, span))];
  const other = b >= 0 ? shownName(nameOf(trees.right, b)) : name;
  return (
    <section className={styles.panel} aria-label="Pair of spans">
      <h2 className={styles.title}>
        <KindMark kind={kind} />
        <Name>{name}</Name>
        {other !== name && (
          <>
            → <Name>{other}</Name>
          </>
        )}
      </h2>
      <p className={styles.quiet}>
        {KIND_WORDS[kind]}, {STATE_WORDS[stateOf(alignment, row)]}
      </p>
      <Figures trees={trees} spans={spans} ids={ids} />
      <Texts trees={trees} spans={spans} ids={ids} isCall={kind === 'llm' || kind === 'judge'} />
    </section>
  );
}

type Spans = readonly [left: number, right: number];
interface PairProps {
  trees: Trees;
  spans: Spans;
  ids: readonly [string, string];
}

const FIGURES: readonly [label: string, (tree: Tree, span: number) => string][] = [
  ['Outcome', outcomeOf],
  ['Model', modelOf],
  ['Duration', (tree, i) => duration((tree.end[i] ?? 0) - (tree.start[i] ?? 0))],
  ['Input tokens', (tree, i) => count(tree.inputTokens[i])],
  ['Output tokens', (tree, i) => count(tree.outputTokens[i])],
  ['Cost', (tree, i) => money(tree.cost[i])],
];

function Figures({ trees, spans: [a, b], ids }: PairProps): ReactElement {
  const { org_id } = useOrganization();
  const head = (side: 0 | 1, tree: Tree, span: number): ReactNode => {
    const query = new URLSearchParams({ span: tree.spanId[span] ?? '' }).toString();
    const href = `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(ids[side])}?${query}`;
    return span < 0 ? SIDES[side] : <Link href={href}>{SIDES[side]}</Link>;
  };
  const rows = FIGURES.map(([label, write]) => ({
    label,
    left: a < 0 ? '' : write(trees.left, a),
    right: b < 0 ? '' : write(trees.right, b),
  })).filter(({ left, right }) => ![left, right].every((text) => ['', '0', '$0'].includes(text)));
  return (
    <table className={styles.figures}>
      <thead>
        <tr>
          <td />
          <th scope="col">{head(0, trees.left, a)}</th>
          <th scope="col">{head(1, trees.right, b)}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ label, left, right }) => (
          <tr key={label} data-differs={left !== right && a >= 0 && b >= 0}>
            <th scope="row">{label}</th>
            <td>{left === '' ? NONE : <Name>{left}</Name>}</td>
            <td>{right === '' ? NONE : <Name>{right}</Name>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Texts({ trees, spans: [a, b], ids, isCall }: PairProps & { isCall: boolean }): ReactElement {
  const { org_id } = useOrganization();
  const left = useQuery({ ...spanQuery(org_id, ids[0], trees.left.spanId[a] ?? ''), enabled: a >= 0 });
  const right = useQuery({ ...spanQuery(org_id, ids[1], trees.right.spanId[b] ?? ''), enabled: b >= 0 });
  for (const query of [left, right])
    if (query.isError) return <ErrorPanel error={query.error} what="the span" onRetry={() => void query.refetch()} />;
  if ((a >= 0 && left.data === undefined) || (b >= 0 && right.data === undefined)) return <Skeleton rows={6} />;
  const details = [left.data?.data ?? null, right.data?.data ?? null] as const;
  const given = details.filter((detail) => detail !== null);
  if (given.every(({ text_state }) => text_state !== 'here'))
    return (
      <>{given[0] !== undefined && <NoTexts traceId={left.data === undefined ? ids[1] : ids[0]} detail={given[0]} />}</>
    );
  return (
    <>
      {details.map((detail, side) =>
        detail === null || detail.text_state === 'here' ? null : (
          <div key={SIDES[side]}>
            <p className={styles.quiet}>{SIDES[side]}</p>
            <NoTexts traceId={ids[side] ?? ''} detail={detail} />
          </div>
        ),
      )}
      <Side title={isCall ? 'Prompt' : 'Input'} part="prompt" details={details} ids={ids} />
      <Side title={isCall ? 'Answer' : 'Output'} part="response" details={details} ids={ids} />
    </>
  );
}

interface SideProps {
  title: string;
  part: TextSide;
  details: readonly [SpanDetail | null, SpanDetail | null];
  ids: readonly [string, string];
}

/** Shown in place of a record where one trace has no such span. */
const NO_SPAN = { span_id: '', truncated: { prompt: false, response: false } } as SpanDetail;

function Side({ title, part, details, ids }: SideProps): ReactElement | null {
  const left = useWholeText(ids[0], details[0] ?? NO_SPAN, part);
  const right = useWholeText(ids[1], details[1] ?? NO_SPAN, part);
  const chars = (details[0]?.chars[part] ?? 0) + (details[1]?.chars[part] ?? 0);
  for (const { missing } of [left, right]) {
    if (missing === 'loading') return <p className={styles.quiet}>{loadingWords(chars)}</p>;
    if (missing !== null) return <ErrorPanel error={missing.error} what="the whole text" onRetry={missing.retry} />;
  }
  if (left.text === '' && right.text === '') return null;
  return <DiffView title={title} left={left.text} right={right.text} sides={SIDES} />;
}

/** Stands in the place of the panel while no pair is open. */
export function NoPair(): ReactElement {
  return (
    <div className={styles.panel}>
      <EmptyState title="No pair of spans is open">Open a row to see what differs between its texts.</EmptyState>
    </div>
  );
}
