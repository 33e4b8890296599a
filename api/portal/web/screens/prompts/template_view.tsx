// The template of a version, or how it differs from that of another version: text by text, or message
// by message.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { DiffView } from '../../diff/diff_view.tsx';
import { useOrganization } from '../../client/session.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type Prompt, promptQuery } from './prompt_api.ts';
import styles from './prompts.module.css';
import { messagesOf, type Template } from './template.ts';
import { TemplateFields } from './template_fields.tsx';

interface TemplateViewProps {
  prompt: Prompt;
  /** Version that the prompt is compared with; empty for none. */
  against: string;
}

/** The template, or the comparison. */
export function TemplateView({ prompt, against }: TemplateViewProps): ReactElement {
  if (against !== '') return <Comparison prompt={prompt} against={against} />;
  return (
    <section className={styles.section}>
      <p className={styles.quiet}>
        {prompt.variables.length === 0 ? 'No variables' : `Variables: ${prompt.variables.join(', ')}`}
        {prompt.model !== null && `. Model: ${prompt.model}`}
      </p>
      <TemplateFields template={prompt.template} rows={2} />
    </section>
  );
}

function Comparison({ prompt, against }: TemplateViewProps): ReactElement {
  const { org_id } = useOrganization();
  const other = useQuery(promptQuery(org_id, prompt.name, against));
  if (other.error !== null && other.data === undefined)
    return (
      <ErrorPanel
        error={other.error}
        what={`version ${against}`}
        onRetry={() => {
          void other.refetch();
        }}
      />
    );
  if (other.data === undefined) return <Skeleton rows={8} />;
  const before = other.data.data;
  return (
    <section className={styles.section}>
      {before.model !== prompt.model && (
        <p>
          Model: <del>{before.model ?? 'none'}</del> <ins>{prompt.model ?? 'none'}</ins>
        </p>
      )}
      {pairsOf(before.template, prompt.template).map(({ title, left, right }) => (
        <DiffView
          key={title}
          level={2}
          title={title}
          left={left}
          right={right}
          sides={[`Version ${against}`, `Version ${prompt.version}`]}
        />
      ))}
    </section>
  );
}

/** Returns the texts to compare: one pair for two texts, else the messages at the same places. */
export function pairsOf(before: Template, after: Template): { title: string; left: string; right: string }[] {
  if (typeof before === 'string' && typeof after === 'string')
    return [{ title: 'Template', left: before, right: after }];
  const [a, b] = [messagesOf(before), messagesOf(after)];
  return Array.from({ length: Math.max(a.length, b.length) }, (_, index) => {
    const [from, to] = [a[index], b[index]];
    const roles = [from?.role, to?.role].filter((role) => role !== undefined);
    return {
      title: `Message ${index + 1}, ${[...new Set(roles)].join(' → ')}`,
      left: from?.content ?? '',
      right: to?.content ?? '',
    };
  });
}
