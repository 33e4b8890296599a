// How the versions of a prompt were used: calls, errors, cost, duration and scores side by side.
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { count, duration, money, moneyExact, percent, tokenFlow } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Moment } from '../../ui/moment.tsx';
import { USAGE_DAYS, type Usage } from './prompt_api.ts';
import styles from './prompts.module.css';
import { scoreWords } from './usage_cells.tsx';

type Figures = Usage['versions'][number];

/** The table; each number of calls leads to its traces. */
export function UsageTable({
  usage,
  tracesOf,
}: {
  usage: Usage;
  tracesOf: (version: string | null) => string;
}): ReactElement {
  if (usage.calls === 0)
    return (
      <EmptyState title={`No calls in ${USAGE_DAYS} days`}>
        Calls count when their span names the prompt: <code>attributes.prompt_name</code> and{' '}
        <code>attributes.prompt_version</code>, or the headers <code>X-Service-Prompt-Name</code> and{' '}
        <code>X-Service-Prompt-Version</code> at the gateway.
      </EmptyState>
    );
  return (
    <section className={styles.section}>
      <p className={styles.quiet}>
        The last {USAGE_DAYS} days. The score of a trace counts for each version that the trace called.
      </p>
      <div className={styles.wide} tabIndex={0} role="region" aria-label="Usage by version">
        <table className={styles.table}>
          <thead>
            <tr>
              {[
                'Version',
                'Calls',
                'Errors',
                'Cost',
                'Cost of a call',
                'Median',
                'p95',
                'Tokens',
                'Scores',
                'Last call',
              ].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {usage.versions.map((figures) => (
              <UsageRow
                key={figures.version}
                figures={figures}
                name={figures.version ?? 'none named'}
                calls={<Link href={tracesOf(figures.version)}>{count(figures.calls)}</Link>}
              />
            ))}
            {usage.versions.length > 1 && (
              <UsageRow figures={usage} name="All" calls={<Link href={tracesOf(null)}>{count(usage.calls)}</Link>} />
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface UsageRowProps {
  figures: Omit<Figures, 'version'>;
  name: string;
  calls: ReactNode;
}

function UsageRow({ figures, name, calls }: UsageRowProps): ReactElement {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{calls}</td>
      <td className={figures.failed_calls > 0 ? styles.failed : undefined}>{percent(figures.error_rate)}</td>
      <td title={moneyExact(figures.cost_usd)}>{money(figures.cost_usd)}</td>
      <td>{money(figures.cost_usd / figures.calls)}</td>
      <td>{duration(figures.p50_duration_ms)}</td>
      <td>{duration(figures.p95_duration_ms)}</td>
      <td>{tokenFlow(figures.input_tokens, figures.output_tokens)}</td>
      <td>
        {figures.scores.map((score) => (
          <div key={`${score.judge_id ?? ''}${score.name}`} title={`${count(score.count)} scores`}>
            {score.name} {scoreWords(score)}
          </div>
        ))}
      </td>
      <td>{figures.last_seen !== null && <Moment at={figures.last_seen} form="ago" />}</td>
    </tr>
  );
}
