// How outcomes are sent, for an organization that sends none.
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import panels from '../home/home.module.css';
import styles from './costs.module.css';

const EVENT = {
  events: [
    {
      name: 'ticket solved',
      outcome: 'success',
      duration_ms: 0,
      attributes: { department: 'support', outcomes: { tickets: 1 } },
    },
  ],
};

interface SendOutcomesProps {
  days: number;
  /** True if no department is known at all; false if departments have costs and no outcomes. */
  isEmpty: boolean;
}

/** The explanation with a command to copy. */
export function SendOutcomes({ days, isEmpty }: SendOutcomesProps): ReactElement {
  const { org_id } = useOrganization();
  const command = [
    `curl -s '${location.origin}/orgs/${org_id}/ingest/custom' \\`,
    `  -H "X-Org-Api-Key: $MILLRACE_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(EVENT, null, 2)}'`,
  ].join('\n');
  return (
    <div className={panels.section}>
      <EmptyState title={isEmpty ? `No department in the last ${days} days` : 'No outcomes yet'}>
        {isEmpty
          ? 'This page compares the cost of each department with its outcomes. Name the department in attributes.department of events, or in the metadata of agents, and count outcomes in attributes.outcomes.'
          : 'The departments above have costs and no outcomes. Count outcomes in attributes.outcomes of any event of the department.'}
      </EmptyState>
      <pre className={styles.command} tabIndex={0} aria-label="Command that sends an outcome">
        {command}
      </pre>
      <CopyButton text={command} label="Copy command" labelled />
    </div>
  );
}
