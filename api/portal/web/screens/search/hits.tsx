// The hits of one trace: the best, and the others behind a button.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import type { TraceItem } from '../../lists/trace_data.ts';
import { money } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import type { HitGroup } from './hit_groups.ts';
import styles from './search.module.css';
import { snippetParts } from './snippet_parts.ts';
import type { SnippetHit } from './use_search.ts';

/** Returns the id of the element of a hit, which holds the focus while the keys act on it. */
export const hitElementId = (span_id: string): string => `hit-${span_id}`;

export interface HitActions {
  active: string | null;
  explained: string | null;
  hrefOf: (hit: SnippetHit) => string;
  onActive: (span_id: string) => void;
  onExplain: (span_id: string) => void;
  onFold: (trace_id: string) => void;
}

interface HitGroupProps extends HitActions {
  group: HitGroup<SnippetHit>;
  /** The trace as the list has it; undefined until it is there. */
  trace: TraceItem | undefined;
  unfolded: boolean;
  /** Highest score of all hits, the scale of the bars. */
  top: number;
}

/** The hits of a trace. */
export function Hits({ group, trace, unfolded, top, onFold, ...actions }: HitGroupProps): ReactElement {
  const { trace_id, hits } = group;
  const shown = unfolded ? hits : hits.slice(0, 1);
  const [best] = hits;
  const more = hits.length - 1;
  return (
    <li className={styles.group}>
      <div className={styles.groupHead}>
        {trace !== undefined && <OutcomeMark outcome={trace.outcome} />}
        <span className={styles.traceName}>{titleOf(trace, best, trace_id)}</span>
        {trace !== undefined && best?.agent_id != null && <span>{best.agent_id}</span>}
        {best !== undefined && <Moment at={trace?.started_at ?? best.started_at} />}
      </div>
      <ol className={styles.hits}>
        {shown.map((hit) => (
          <HitLine key={hit.span_id} hit={hit} top={top} {...actions} onFold={onFold} />
        ))}
      </ol>
      {more > 0 && (
        <Button
          look="quiet"
          aria-expanded={unfolded}
          onClick={() => {
            onFold(trace_id);
          }}
        >
          {unfolded ? 'Show the best hit only' : `${more} more ${more === 1 ? 'hit' : 'hits'} in this trace`}
        </Button>
      )}
    </li>
  );
}

/** Returns the name of the trace, or its agent and id where the list has no name of it. */
function titleOf(trace: TraceItem | undefined, hit: SnippetHit | undefined, trace_id: string): string {
  const name = trace?.root_span_name ?? '';
  if (name !== '') return name;
  const agent_id = trace?.agent_id ?? hit?.agent_id ?? '';
  return agent_id === '' ? trace_id : `${agent_id} · ${trace_id}`;
}

function HitLine({
  hit,
  top,
  active,
  explained,
  hrefOf,
  onActive,
  onExplain,
}: HitActions & { hit: SnippetHit; top: number }): ReactElement {
  return (
    <li className={cx(styles.hit, active === hit.span_id && styles.active)}>
      <Link
        id={hitElementId(hit.span_id)}
        href={hrefOf(hit)}
        className={styles.open}
        onFocus={() => {
          onActive(hit.span_id);
        }}
      >
        <span className={styles.hitHead}>
          <OutcomeMark outcome={hit.outcome} />
          <span className={styles.hitName}>{hit.name}</span>
          {hit.model !== '' && <span>{hit.model}</span>}
          <span>{hit.part === 'prompt' ? 'in the prompt' : 'in the response'}</span>
          {hit.cost_usd > 0 && <span>{money(hit.cost_usd)}</span>}
        </span>
        <span className={styles.snippet}>
          {snippetParts(hit.snippet, hit.marks).map(({ text, marked }, at) =>
            marked ? <mark key={at}>{text}</mark> : <span key={at}>{text}</span>,
          )}
        </span>
      </Link>
      <button
        type="button"
        className={styles.relevance}
        aria-expanded={explained === hit.span_id}
        aria-label={`Relevance ${hit.score.toFixed(2)}: explain`}
        title="Explain the rank (i)"
        onClick={() => {
          onExplain(hit.span_id);
        }}
      >
        <span className={styles.relevanceTrack}>
          <span className={styles.relevanceBar} style={{ width: `${(100 * hit.score) / Math.max(top, 1e-9)}%` }} />
        </span>
        {hit.score.toFixed(2)}
      </button>
      {explained === hit.span_id && <Reason hit={hit} />}
    </li>
  );
}

function Reason({ hit: { score, score_parts } }: { hit: SnippetHit }): ReactElement {
  return (
    <table className={styles.reason}>
      <caption>The score is the sum over the words of the query that the span has.</caption>
      <tbody>
        {score_parts.map(({ word, score: part }) => (
          <tr key={word}>
            <th scope="row">{word}</th>
            <td>{part.toFixed(2)}</td>
            <td className={styles.reasonBar}>
              <span style={{ width: `${(100 * part) / Math.max(score, 1e-9)}%` }} />
            </td>
          </tr>
        ))}
        <tr>
          <th scope="row">Score</th>
          <td>{score.toFixed(2)}</td>
          <td />
        </tr>
      </tbody>
    </table>
  );
}
