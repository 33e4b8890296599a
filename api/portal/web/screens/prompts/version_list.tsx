// The versions of a prompt as a line in time, newest first: which is shown, and which it is compared
// with.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { count } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import { Moment } from '../../ui/moment.tsx';
import type { Prompt, Usage } from './prompt_api.ts';
import styles from './prompts.module.css';

interface VersionListProps {
  versions: Prompt['versions'];
  shown: string;
  /** Version that the shown one is compared with; empty for none. */
  against: string;
  usage: Usage | undefined;
  hrefOf: (patch: { version?: string; against?: string }) => string;
}

/** The line of versions. */
export function VersionList({ versions, shown, against, usage, hrefOf }: VersionListProps): ReactElement {
  return (
    <nav aria-label="Versions">
      <ol className={styles.versions}>
        {versions.map(({ version, model, labels, created_at }, index) => (
          <li key={version} className={styles.version} data-shown={version === shown}>
            <Link href={hrefOf({ version, against: '' })} aria-current={version === shown ? 'true' : undefined}>
              {version}
            </Link>{' '}
            <span className={styles.quiet}>{index === 0 && 'current'}</span>
            {labels
              .filter((label) => label !== 'latest')
              .map((label) => (
                <Chip key={label} tone="accent">
                  {label}
                </Chip>
              ))}
            <div className={styles.quiet}>
              <Moment at={created_at} form="ago" />
              {model !== null && `, ${model}`}
              {usage !== undefined && `, ${callWords(usage, version)}`}
            </div>
            {version !== shown &&
              (version === against ? (
                <Link className={styles.quiet} href={hrefOf({ against: '' })}>
                  Stop comparing
                </Link>
              ) : (
                <Link
                  className={styles.quiet}
                  href={hrefOf({ against: version })}
                  aria-label={`Compare ${shown} with ${version}`}
                >
                  Compare
                </Link>
              ))}
          </li>
        ))}
      </ol>
    </nav>
  );
}

function callWords({ versions }: Usage, version: string): string {
  const calls = versions.find((one) => one.version === version)?.calls ?? 0;
  return `${count(calls)} ${calls === 1 ? 'call' : 'calls'}`;
}
