// The tab Scores: verdicts of judges and scores of people, of the span and of its trace.
import { useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { useOrganization, useSession } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Name } from '../../trace/name.tsx';
import { takeBack } from './score_changes.ts';
import type { Score, SpanDetail } from './trace_api.ts';
import styles from './span_panel.module.css';

export function ScoresTab({ detail, onScore }: { detail: SpanDetail; onScore: () => void }): ReactElement {
  const { can } = useOrganization();
  const add = can('ingest:write') ? (
    <Button keys="b" icon="plus" onClick={onScore}>
      Add score
    </Button>
  ) : undefined;
  if (detail.scores.length === 0)
    return (
      <EmptyState title="No scores yet" action={add}>
        Judges and people score spans and traces. Their scores appear here.
      </EmptyState>
    );
  return (
    <>
      {detail.scores.map((score, index) => (
        <ScoreLine key={score.score_id ?? index} score={score} />
      ))}
      <p style={{ marginBlockStart: 12 }}>{add}</p>
    </>
  );
}

function ScoreLine({ score }: { score: Score }): ReactElement {
  const { org_id, can } = useOrganization();
  const queries = useQueryClient();
  const session = useSession();
  const { score_id, name, value, verdict, comment, source, span_id, author } = score;
  const isOwn = author.type === 'user' && author.id === session.data?.user_id;
  const mayDelete = score_id !== null && can('ingest:write') && (isOwn || can('judges:write'));
  return (
    <div className={styles.score} data-verdict={verdict}>
      <Name>{name}</Name>
      <b>{value === null ? 'no value' : String(value)}</b>
      {verdict !== null && <span>{verdict}</span>}
      <span className={styles.quiet}>
        {source === 'judge' ? 'judge' : author.id} · {span_id === null ? 'whole trace' : 'this span'}
      </span>
      {mayDelete && (
        <Button
          look="quiet"
          icon="trash"
          hint={`Take back the score ${name}`}
          onClick={() => {
            void takeBack(queries, org_id, score_id);
          }}
        />
      )}
      {comment !== null && comment !== '' && <p dir="auto">{comment}</p>}
    </div>
  );
}
