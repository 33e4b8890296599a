// The dialog of a prompt's labels: which version each names, moving one to the shown version, and
// removing one.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { type Prompt, refreshPrompts } from './prompt_api.ts';
import styles from './prompts.module.css';

const LATEST = 'latest';
const LABEL_CHARS_MAX = 36;

interface NamedVersion {
  label: string;
  version: string;
}

/** Returns the labels that can be moved, with the version that each names, in the order of their names. */
const labelsOf = ({ versions }: Prompt): NamedVersion[] =>
  versions
    .flatMap(({ version, labels }) => labels.map((label) => ({ label, version })))
    .filter(({ label }) => label !== LATEST)
    .sort((a, b) => (a.label < b.label ? -1 : 1));

/** Returns the changes of labels; each reads the prompt again once it is done. */
function useLabels({ name }: Prompt) {
  const { org_id } = useOrganization();
  const path = (label: string) => ({ params: { path: { name, label } } });
  const move = useMutation({
    mutationFn: ({ label, version }: NamedVersion) =>
      send(org_id, 'put', '/v1/prompts/{name}/labels/{label}', { ...path(label), body: { version } }),
    onSuccess: async ({ data }) => {
      toast({ text: `The label ${data.label} names version ${data.version}.` });
      await refreshPrompts(org_id);
    },
  });
  const remove = useMutation({
    mutationFn: (label: string) => send(org_id, 'delete', '/v1/prompts/{name}/labels/{label}', path(label)),
    onSuccess: async ({ data }) => {
      toast({ text: `The label ${data.label} is removed.` });
      await refreshPrompts(org_id);
    },
  });
  return { move, remove };
}

interface LabelLinesProps {
  prompt: Prompt;
  onMove: (label: string) => void;
  onRemove: (label: string) => void;
}

/** The labels of a prompt, with the version that each names. */
function LabelLines({ prompt, onMove, onRemove }: LabelLinesProps): ReactElement {
  const labels = labelsOf(prompt);
  const { version } = prompt;
  if (labels.length === 0) return <p>No version has a label besides latest, which always names the newest version.</p>;
  return (
    <ul className={styles.labels}>
      {labels.map((one) => (
        <li key={one.label} className={styles.line}>
          <span className={styles.labelName}>{one.label}</span>
          <span className={styles.quiet}>version {one.version}</span>
          {one.version !== version && (
            <Button
              look="quiet"
              onClick={() => {
                onMove(one.label);
              }}
            >
              Move {one.label} to version {version}
            </Button>
          )}
          <Button
            look="quiet"
            onClick={() => {
              onRemove(one.label);
            }}
          >
            Remove {one.label}
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** The open dialog. */
export function LabelsDialog({ prompt, onClose }: { prompt: Prompt; onClose: () => void }): ReactElement {
  const { move, remove } = useLabels(prompt);
  const [label, setLabel] = useState('');
  const { version } = prompt;
  const error = move.error ?? remove.error;
  const submit = (): void => {
    if (label.trim() !== '' && !move.isPending) move.mutate({ label: label.trim(), version });
  };
  return (
    <Dialog
      title={`Labels of ${prompt.name}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button
            look="primary"
            keys="Ctrl+Enter"
            busy={move.isPending}
            disabled={label.trim() === ''}
            onClick={submit}
          >
            Move label to version {version}
          </Button>
        </>
      }
    >
      <div className={styles.section}>
        {error !== null && <ErrorPanel error={error} what="the label" />}
        <LabelLines
          prompt={prompt}
          onMove={(label) => {
            move.mutate({ label, version });
          }}
          onRemove={(label) => {
            remove.mutate(label);
          }}
        />
        <Field label="Label" hint="1 to 36 of lower-case letters, digits, _ -. A label names one version.">
          {(control) => (
            <Input
              {...control}
              autoFocus
              value={label}
              maxLength={LABEL_CHARS_MAX}
              onChange={(event) => {
                setLabel(event.target.value);
              }}
            />
          )}
        </Field>
      </div>
    </Dialog>
  );
}
