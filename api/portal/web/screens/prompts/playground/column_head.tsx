// The head of a column of the playground: which version or draft, which model, the template, and what
// can be done with it.
import { type ReactElement, useId } from 'react';
import { useOrganization } from '../../../client/session.ts';
import { Button } from '../../../ui/button.tsx';
import { Input, Select } from '../../../ui/field.tsx';
import type { Prompt } from '../prompt_api.ts';
import styles from '../prompts.module.css';
import type { Template } from '../template.ts';
import { FormSelect, TemplateFields } from '../template_fields.tsx';
import type { RunColumn } from '../prompts_url.ts';
import { columnName, isChanged } from './state.ts';
import type { ShownColumn } from './use_playground.ts';

interface ColumnHeadProps {
  column: ShownColumn;
  versions: Prompt['versions'];
  /** Models that may be meant, for the list of suggestions. */
  models: readonly string[];
  /** Names that an input gives a value. */
  known: readonly string[];
  onChange: (patch: Partial<RunColumn>, replace?: boolean) => void;
  onEdit: (template: Template) => void;
  onSave: () => void;
  /** Null for the only column. */
  onRemove: (() => void) | null;
}

/** The head of a column. */
export function ColumnHead(props: ColumnHeadProps): ReactElement {
  const { column, versions, models, known, onChange, onEdit, onSave, onRemove } = props;
  const { can } = useOrganization();
  const id = useId();
  const name = columnName(column);
  const { stored, isDraft } = column;
  const mayEdit = isDraft && stored !== undefined;
  const canSave = mayEdit && can('prompts:write') && isChanged(column, stored);
  const save = (): void => {
    if (canSave) onSave();
  };
  return (
    <div role="group" aria-label={name} className={styles.column}>
      <div className={styles.line}>
        <Select
          aria-label={`Version of ${name}`}
          value={`${isDraft ? '~' : ''}${column.version}`}
          onChange={({ target: { value } }) => {
            const toDraft = value.startsWith('~');
            onChange({ version: toDraft ? value.slice(1) : value, isDraft: toDraft });
          }}
        >
          {versions.map(({ version }) => (
            <option key={version} value={version}>
              Version {version}
            </option>
          ))}
          {versions.map(({ version }) => (
            <option key={version} value={`~${version}`}>
              Draft of {version}
            </option>
          ))}
        </Select>
        {mayEdit && <FormSelect template={column.template} of={name} onChange={onEdit} />}
      </div>
      <div className={styles.line}>
        <Input
          aria-label={`Model of ${name}`}
          placeholder="Model"
          list={id}
          value={column.model}
          maxLength={256}
          onChange={(event) => {
            onChange({ model: event.target.value }, true);
          }}
        />
        <datalist id={id}>
          {models.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        {canSave && (
          <Button keys="Ctrl+Enter" onClick={save}>
            Save as version
          </Button>
        )}
        {onRemove !== null && <Button look="quiet" icon="x" hint={`Remove column ${name}`} onClick={onRemove} />}
      </div>
      <TemplateFields
        template={column.template}
        of={name}
        variables={known}
        rows={4}
        onSave={save}
        {...(mayEdit ? { onChange: onEdit } : {})}
      />
    </div>
  );
}
