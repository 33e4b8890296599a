// The delivery attempts of an endpoint, the newest first, by outcome and event.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { count, duration } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Select } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { answerWords, OUTCOME_TONES, OUTCOME_WORDS } from './outcomes.ts';
import { type Attempt, attemptsQuery, type Webhook } from './webhook_data.ts';
import { OUTCOMES, webhookUrl } from './webhook_url.ts';
import styles from './webhooks.module.css';

/** Height of the table, its head and a row of two lines, pixels. */
const HEIGHT_MAX = 480;
const HEAD = 60;
const ROW = 52;

type State = ReturnType<typeof webhookUrl.parse>;
type Change = (patch: Partial<State>) => void;

/** The tab. */
export function Attempts({ webhook }: { webhook: Webhook }): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useSearchState(webhookUrl);
  const { outcome, event, event_id } = state;
  const pages = useInfiniteQuery(attemptsQuery(org_id, webhook.webhook_id, { outcome, event, event_id }));
  const [shown, setShown] = useState<Attempt | null>(null);
  const rows = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  const total = pages.data?.pages[0]?.meta.total;
  return (
    <>
      <Filters webhook={webhook} state={state} onChange={change} total={total} />
      {pages.error !== null && pages.data === undefined ? (
        <ErrorPanel error={pages.error} what="the attempts" onRetry={() => void pages.refetch()} />
      ) : total === 0 ? (
        <NoAttempts filtered={outcome !== null || event !== '' || event_id !== ''} onChange={change} />
      ) : (
        <div className={styles.attempts} style={{ height: Math.min(HEIGHT_MAX, HEAD + ROW * rows.length) }}>
          <ListTable
            label="Attempts"
            noun="attempt"
            address={`attempts ${webhook.webhook_id} ${outcome ?? ''} ${event} ${event_id}`}
            rows={rows}
            rowKey={attemptKey}
            columns={columnsOf}
            onOpen={setShown}
            pages={pages}
            total={total}
            loading={pages.isPending}
          />
        </div>
      )}
      {shown !== null && (
        <AttemptDialog
          attempt={shown}
          onChange={change}
          onClose={() => {
            setShown(null);
          }}
        />
      )}
    </>
  );
}

const attemptKey = ({ at, event_id, attempt }: Attempt): string => `${at} ${event_id} ${attempt}`;

interface FiltersProps {
  webhook: Webhook;
  state: State;
  onChange: Change;
  total: number | undefined;
}

function Filters({ webhook, state: { outcome, event, event_id }, onChange, total }: FiltersProps): ReactElement {
  const events = [...new Set([...webhook.events, 'webhook.test', ...(event === '' ? [] : [event])])];
  return (
    <div className={lists.actions}>
      <span className={lists.total} role="status">
        {total === undefined ? '' : `${count(total)} ${total === 1 ? 'attempt' : 'attempts'} in 30 days`}
      </span>
      {OUTCOMES.map((one) => (
        <Chip
          key={one}
          pressed={outcome === one}
          onToggle={() => {
            onChange({ outcome: outcome === one ? null : one });
          }}
        >
          {OUTCOME_WORDS[one]}
        </Chip>
      ))}
      <span>
        <Select
          aria-label="Event"
          value={event}
          onChange={({ target }) => {
            onChange({ event: target.value });
          }}
        >
          <option value="">All events</option>
          {events.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Select>
      </span>
      {event_id !== '' && (
        <Chip
          field="event_id"
          removeLabel="Show all events"
          onRemove={() => {
            onChange({ event_id: '' });
          }}
        >
          {oneLine(event_id)}
        </Chip>
      )}
    </div>
  );
}

function NoAttempts({ filtered, onChange }: { filtered: boolean; onChange: Change }): ReactElement {
  if (!filtered)
    return (
      <EmptyState title="No attempts in the last 30 days">
        An attempt appears within seconds after an event of the endpoint. The test event is one.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No attempt matches these filters"
      action={
        <Button
          onClick={() => {
            onChange({ outcome: null, event: '', event_id: '' });
          }}
        >
          Show all attempts
        </Button>
      }
    />
  );
}

const outcomeMark = ({ outcome }: Attempt): ReactElement => (
  <Chip tone={OUTCOME_TONES[outcome]}>{OUTCOME_WORDS[outcome]}</Chip>
);
const answer = (attempt: Attempt): ReactElement => (
  <bdi className={lists.name} title={oneLine(answerWords(attempt))}>
    {oneLine(answerWords(attempt))}
  </bdi>
);

function columnsOf(narrow: boolean): Column<Attempt>[] {
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Attempt',
        width: 'minmax(0, 1fr)',
        cell: (attempt) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{attempt.event}</span>
              {outcomeMark(attempt)}
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{answer(attempt)}</span>
              <Moment at={attempt.at} />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'at', head: 'Began', width: '136px', cell: ({ at }) => <Moment at={at} /> },
    { id: 'event', head: 'Event', width: 'minmax(160px, 2fr)', cell: ({ event }) => event },
    { id: 'attempt', head: 'Attempt', width: '72px', align: 'end', cell: ({ attempt }) => count(attempt) },
    { id: 'outcome', head: 'Outcome', width: '120px', cell: outcomeMark },
    { id: 'answer', head: 'Answer', width: 'minmax(120px, 2fr)', cell: answer },
    { id: 'took', head: 'Took', width: '80px', align: 'end', cell: ({ duration_ms }) => duration(duration_ms) },
  ];
}

interface AttemptDialogProps {
  attempt: Attempt;
  onChange: Change;
  onClose: () => void;
}

function AttemptDialog({ attempt, onChange, onClose }: AttemptDialogProps): ReactElement {
  const facts: [string, ReactElement | string][] = [
    ['Outcome', outcomeMark(attempt)],
    ['Began', <Moment key="at" at={attempt.at} form="full" />],
    ['Earlier attempts', count(attempt.attempt)],
    ['Took', duration(attempt.duration_ms)],
    ['Event id', <code key="id">{oneLine(attempt.event_id)}</code>],
  ];
  return (
    <Dialog
      title={attempt.event}
      onClose={onClose}
      footer={
        <>
          <CopyButton text={attempt.event_id} label="Copy event id" labelled />
          <Button
            look="primary"
            onClick={() => {
              onChange({ event_id: attempt.event_id, outcome: null, event: '' });
              onClose();
            }}
          >
            Show all attempts of this event
          </Button>
        </>
      }
    >
      <dl className={lists.sums}>
        {facts.map(([label, value]) => (
          <div key={label} className={styles.address}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h3>Answer</h3>
      <TextView text={answerWords(attempt)} label="Answer" />
    </Dialog>
  );
}
