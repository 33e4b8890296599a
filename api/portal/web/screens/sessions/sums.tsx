// The numbers of a session or a user in one line of terms.
import type { ReactElement, ReactNode } from 'react';
import { count, exact, money, moneyExact, percent, tokenFlow } from '../../text/format.ts';
import { Moment } from '../../ui/moment.tsx';
import styles from './sessions.module.css';
import type { Group } from './group_table.tsx';

/** The numbers, with more terms of the caller at the end. */
export function Sums({ sums, children }: { sums: Omit<Group, 'id'>; children?: ReactNode }): ReactElement {
  return (
    <dl className={styles.sums}>
      <Sum name="Traces">{count(sums.traces)}</Sum>
      <Sum name="Failed">
        <span className={sums.failed_traces > 0 ? styles.failed : undefined}>
          {count(sums.failed_traces)}
          {sums.failed_traces > 0 && ` (${percent(sums.failed_share)})`}
        </span>
      </Sum>
      <Sum name="Cost">
        <span title={moneyExact(sums.cost_usd)}>{money(sums.cost_usd)}</span>
      </Sum>
      <Sum name="Tokens">
        <span title={`${exact(sums.input_tokens)} input, ${exact(sums.output_tokens)} output`}>
          {tokenFlow(sums.input_tokens, sums.output_tokens)}
        </span>
      </Sum>
      {children}
      <Sum name="First seen">
        <Moment at={sums.first_seen} />
      </Sum>
      <Sum name="Last seen">
        <Moment at={sums.last_seen} />
      </Sum>
    </dl>
  );
}

/** One term. */
export function Sum({ name, children }: { name: string; children: ReactNode }): ReactElement {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
