// Edits or shows a template: one editor for a text, one for each message of a chat.
import { type ReactElement, useId } from 'react';
import { Editor } from '../../editor/editor.tsx';
import { Button } from '../../ui/button.tsx';
import { Input, Select } from '../../ui/field.tsx';
import styles from './prompts.module.css';
import { asType, messagesOf, type Template } from './template.ts';

interface TemplateFieldsProps {
  template: Template;
  /** Names that have a value; others are marked. Absent: none is marked. */
  variables?: readonly string[];
  /** Added to the names of the fields, where several templates stand beside each other, each with a FormSelect. */
  of?: string;
  rows?: number;
  error?: string | null;
  focused?: boolean;
  /** Absent: the template is shown, not edited. */
  onChange?: (template: Template) => void;
  onSave?: () => void;
}

const ROLES = ['system', 'user', 'assistant'];

/** The fields of a template. */
export function TemplateFields(props: TemplateFieldsProps): ReactElement {
  const { template, variables, of = '', rows = 6, error = null, focused = false, onChange, onSave } = props;
  const suffix = of === '' ? '' : ` of ${of}`;
  const messages = messagesOf(template);
  const isChat = typeof template !== 'string';
  const change = (index: number, role: string, content: string): void => {
    onChange?.(isChat ? template.with(index, { role, content }) : content);
  };
  return (
    <div className={styles.template}>
      {onChange !== undefined && of === '' && <FormSelect template={template} onChange={onChange} />}
      {messages.map(({ role, content }, index) => (
        // Messages have no identity but their place.
        <div key={index} className={styles.template}>
          {isChat && (
            <MessageHead
              role={role}
              label={`Role of message ${index + 1}${suffix}`}
              onRole={
                onChange === undefined
                  ? null
                  : (next) => {
                      onChange(template.with(index, { role: next, content }));
                    }
              }
              onRemove={
                onChange === undefined || messages.length === 1
                  ? null
                  : () => {
                      onChange(template.filter((_, at) => at !== index));
                    }
              }
            />
          )}
          <Editor
            bare
            label={(isChat ? `Message ${index + 1}, ${role}` : 'Template') + suffix}
            value={content}
            language="template"
            rows={isChat ? Math.min(rows, 3) : rows}
            error={index === 0 ? error : null}
            focused={focused && index === 0}
            {...(variables === undefined ? {} : { variables })}
            {...(onSave === undefined ? {} : { onSave })}
            {...(onChange === undefined
              ? {}
              : {
                  onChange: (next: string) => {
                    change(index, role, next);
                  },
                })}
          />
        </div>
      ))}
      {isChat && onChange !== undefined && (
        <div>
          <Button
            look="quiet"
            icon="plus"
            onClick={() => {
              onChange([...template, { role: 'user', content: '' }]);
            }}
          >
            Add message
          </Button>
        </div>
      )}
    </div>
  );
}

/** Chooses between one text and the messages of a chat. */
export function FormSelect({
  template,
  of = '',
  onChange,
}: Pick<TemplateFieldsProps, 'template' | 'of'> & { onChange: (template: Template) => void }): ReactElement {
  return (
    <Select
      aria-label={of === '' ? 'Form' : `Form of ${of}`}
      value={typeof template === 'string' ? 'text' : 'chat'}
      onChange={(event) => {
        onChange(asType(template, event.target.value === 'chat' ? 'chat' : 'text'));
      }}
    >
      <option value="text">One text</option>
      <option value="chat">Messages</option>
    </Select>
  );
}

interface MessageHeadProps {
  role: string;
  label: string;
  onRole: ((role: string) => void) | null;
  onRemove: (() => void) | null;
}

function MessageHead({ role, label, onRole, onRemove }: MessageHeadProps): ReactElement {
  const id = useId();
  if (onRole === null) return <h3>{role}</h3>;
  return (
    <div className={styles.line}>
      <Input
        aria-label={label}
        list={id}
        value={role}
        maxLength={32}
        onChange={(event) => {
          onRole(event.target.value);
        }}
      />
      <datalist id={id}>
        {ROLES.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {onRemove !== null && <Button look="quiet" icon="x" hint="Remove message" onClick={onRemove} />}
    </div>
  );
}
