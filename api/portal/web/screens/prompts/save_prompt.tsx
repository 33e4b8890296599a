// The dialog that saves a version of a prompt: a new prompt, or another version of one that exists.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { promptPath, refreshPrompts } from './prompt_api.ts';
import styles from './prompts.module.css';
import { isBlank, type Template } from './template.ts';
import { TemplateFields } from './template_fields.tsx';

export interface PromptDraft {
  template: Template;
  model: string;
}

type Form = PromptDraft & { name: string; version: string };

interface SavePromptProps {
  /** Name of the prompt; null asks for the name of a new one. */
  name: string | null;
  draft: PromptDraft;
  /** Names that have a value; other variables are marked. */
  variables?: readonly string[];
  onClose: () => void;
  /** Called with the version; absent: the page of the prompt opens. */
  onSaved?: (version: string) => void;
}

const FIELDS = ['name', 'version', 'template', 'model'] as const;

/** Returns the detail of an error that names a field of the form, by that field. */
function fieldErrors(error: unknown): Partial<Record<(typeof FIELDS)[number], string>> {
  if (!(error instanceof RequestError) || error.status !== 422) return {};
  const field = FIELDS.find((one) => error.detail.startsWith(one));
  return field === undefined ? {} : { [field]: error.detail };
}

/** Returns the body of the request; fields that are blank are left out. */
function bodyOf({ name, version, template, model }: Form) {
  return {
    name: name.trim(),
    template,
    ...(version.trim() === '' ? {} : { version: version.trim() }),
    ...(model.trim() === '' ? {} : { model: model.trim() }),
  };
}

/** Returns the change that saves the form. */
function useSave(form: Form, onClose: () => void, onSaved: SavePromptProps['onSaved']) {
  const { org_id } = useOrganization();
  const [key, setKey] = useState(randomId);
  return useMutation({
    mutationFn: () => send(org_id, 'post', '/v1/prompts', { idempotencyKey: key, body: bodyOf(form) }),
    onSuccess: async ({ data }) => {
      onClose();
      toast({ text: `Version ${data.version} of ${data.name} is saved.` });
      await refreshPrompts(org_id);
      if (onSaved === undefined) navigate(promptPath(org_id, data.name));
      else onSaved(data.version);
    },
    onError: () => {
      // The next submission is another request, so it needs another key.
      setKey(randomId());
    },
  });
}

/** The open dialog. */
export function SavePrompt({ name, draft, variables, onClose, onSaved }: SavePromptProps): ReactElement {
  const [form, setForm] = useState({ name: name ?? '', version: '', ...draft });
  const save = useSave(form, onClose, onSaved);
  const set = (field: 'name' | 'model' | 'version') => (text: string) => {
    setForm({ ...form, [field]: text });
  };
  const errors = fieldErrors(save.error);
  const otherError = Object.keys(errors).length === 0 ? save.error : null;
  const isReady = form.name.trim() !== '' && !isBlank(form.template);
  const submit = (): void => {
    if (isReady && !save.isPending) save.mutate();
  };
  return (
    <Dialog
      title={name === null ? 'Create prompt' : `Save a version of ${name}`}
      form="wide"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <Actions isNew={name === null} isReady={isReady} isBusy={save.isPending} onSave={submit} onClose={onClose} />
      }
    >
      <div className={styles.section}>
        {otherError !== null && <ErrorPanel error={otherError} what="the prompt" />}
        {name === null && (
          <TextField
            label="Name"
            hint="1 to 128 of letters, digits, _ . : / -. Spans name it in attributes.prompt_name."
            error={errors.name}
            max={128}
            focused
            value={form.name}
            onChange={set('name')}
          />
        )}
        <TemplateFields
          template={form.template}
          error={errors.template ?? null}
          focused={name !== null}
          {...(variables === undefined ? {} : { variables })}
          onChange={(template) => {
            setForm({ ...form, template });
          }}
        />
        <div className={styles.line}>
          <TextField
            label="Model"
            hint="The model that the prompt is meant for; may stay empty"
            error={errors.model}
            max={256}
            value={form.model}
            onChange={set('model')}
          />
          <TextField
            label="Version"
            hint="Empty: the next whole number"
            error={errors.version}
            max={64}
            value={form.version}
            onChange={set('version')}
          />
        </div>
      </div>
    </Dialog>
  );
}

interface ActionsProps {
  isNew: boolean;
  isReady: boolean;
  isBusy: boolean;
  onSave: () => void;
  onClose: () => void;
}

const Actions = ({ isNew, isReady, isBusy, onSave, onClose }: ActionsProps): ReactElement => (
  <>
    <Button onClick={onClose}>Cancel</Button>
    <Button look="primary" keys="Ctrl+Enter" busy={isBusy} disabled={!isReady} onClick={onSave}>
      {isNew ? 'Create prompt' : 'Save version'}
    </Button>
  </>
);

interface TextFieldProps {
  label: string;
  hint: string;
  error: string | undefined;
  max: number;
  focused?: boolean;
  value: string;
  onChange: (text: string) => void;
}

function TextField({ label, hint, error, max, focused = false, value, onChange }: TextFieldProps): ReactElement {
  return (
    <Field label={label} hint={hint} error={error ?? null}>
      {(control) => (
        <Input
          {...control}
          autoFocus={focused}
          value={value}
          maxLength={max}
          onChange={(event) => {
            onChange(event.target.value);
          }}
        />
      )}
    </Field>
  );
}
