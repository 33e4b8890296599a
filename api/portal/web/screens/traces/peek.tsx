// The trace that is looked at beside the list: its head, its cause, its first and last text, and links
// to the trace, the session and the user. j and k go on while it is open.
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { Tags } from '../../lists/marks.tsx';
import { nameOf, type TraceItem } from '../../lists/trace_data.ts';
import { count, duration, exact, money, moneyExact, NONE, tokenFlow } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { PreviewModels, PreviewVerdictWords, usePreview } from './preview_cells.tsx';
import styles from './peek.module.css';

interface PeekProps {
  trace: TraceItem;
  href: string;
  onClose: () => void;
}

/** The panel. */
export function Peek({ trace, href, onClose }: PeekProps): ReactElement {
  return (
    <section className={styles.peek} aria-label={`Trace ${nameOf(trace)}`}>
      <header className={styles.head}>
        <OutcomeMark outcome={trace.outcome} />
        <h2 className={styles.name}>{nameOf(trace)}</h2>
        <Button look="quiet" icon="x" hint="Close" keys="Escape" onClick={onClose} />
      </header>
      <div className={styles.body}>
        <p className={styles.id}>
          <code>{trace.trace_id}</code>
          <CopyButton text={trace.trace_id} label="Copy trace id" />
        </p>
        <Cause trace={trace} />
        <Facts trace={trace} />
        <Texts trace_id={trace.trace_id} />
      </div>
      <footer className={styles.foot}>
        <ButtonLink href={href} look="primary" keys="Enter">
          Open trace
        </ButtonLink>
      </footer>
    </section>
  );
}

function Cause({ trace }: { trace: TraceItem }): ReactElement | null {
  const preview = usePreview(trace.trace_id);
  if (trace.outcome === 'success') return null;
  const words = trace.outcome === 'timeout' ? 'This trace timed out.' : 'This trace failed.';
  return (
    <p className={styles.cause} data-outcome={trace.outcome}>
      {preview?.first_error ?? words}
    </p>
  );
}

function Facts({ trace }: { trace: TraceItem }): ReactElement {
  const { org_id } = useOrganization();
  const root = `/o/${encodeURIComponent(org_id)}`;
  return (
    <dl className={styles.facts}>
      <Fact name="Started">
        <Moment at={trace.started_at} form="full" />
      </Fact>
      <Fact name="Duration">
        <span title={`${exact(trace.duration_ms)} ms`}>{duration(trace.duration_ms)}</span>
      </Fact>
      <Fact name="Cost">
        <span title={moneyExact(trace.cost_usd)}>{money(trace.cost_usd)}</span>
      </Fact>
      <Fact name="Tokens">{tokenFlow(trace.input_tokens, trace.output_tokens)}</Fact>
      <Fact name="Spans">{count(trace.span_count)}</Fact>
      <Fact name="Agent">{trace.agent_id ?? NONE}</Fact>
      <Fact name="Models">
        <PreviewModels trace_id={trace.trace_id} />
      </Fact>
      <Fact name="Verdicts">
        <PreviewVerdictWords trace_id={trace.trace_id} />
      </Fact>
      {trace.session_id !== null && (
        <Fact name="Session">
          <Link href={`${root}/sessions/${encodeURIComponent(trace.session_id)}`}>{trace.session_id}</Link>
        </Fact>
      )}
      {trace.user_id !== null && (
        <Fact name="User">
          <Link href={`${root}/users/${encodeURIComponent(trace.user_id)}`}>{trace.user_id}</Link>
        </Fact>
      )}
      {trace.tags.length > 0 && (
        <Fact name="Tags">
          <Tags tags={trace.tags} />
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Texts({ trace_id }: { trace_id: string }): ReactElement | null {
  const preview = usePreview(trace_id);
  if (preview === undefined) return null;
  const texts = [
    { title: 'First message', text: preview.first_text },
    { title: 'Last answer', text: preview.answer },
  ].filter(({ text }) => text !== null && text !== '');
  return (
    <>
      {texts.map(({ title, text }) => (
        <div key={title}>
          <h3>{title}</h3>
          <p className={styles.text}>{text}</p>
        </div>
      ))}
    </>
  );
}
