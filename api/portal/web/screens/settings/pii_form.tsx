// The form of the PII policy, with a text that shows what the rules would replace before they are saved.
import { type ReactElement, useState } from 'react';
import { RANK, useKeys } from '../../shell/keys.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import costs from '../costs/costs.module.css';
import { usePiiTest, useSavePii } from './pii_api.ts';
import { isSame, KINDS, patternError, PATTERNS_MAX, type PiiPolicy } from './pii_draft.ts';
import styles from './settings.module.css';
import { changeError } from './settings_api.ts';

const SAMPLE = 'Write to ann@example.com or call +1 (415) 555-0142; card 4111 1111 1111 1111, from 203.0.113.7';
const TEXT_CHARS_MAX = 20_000;
const PATTERN_CHARS_MAX = 500;
const LABEL_CHARS_MAX = 32;

/** The form. */
export function PiiForm({ stored }: { stored: PiiPolicy }): ReactElement {
  const [draft, setDraft] = useState(stored);
  const [text, setText] = useState(SAMPLE);
  const save = useSavePii();
  const complete = { ...draft, custom: draft.custom.filter(({ label, pattern }) => label !== '' && pattern !== '') };
  const test = usePiiTest(text, complete);
  const isChanged = !isSame(complete, stored);
  const submit = (): void => {
    if (isChanged && !save.isPending) save.mutate(complete);
  };
  useKeys('Redaction', [{ keys: 'Mod+Enter', label: 'Save the rules of redaction', run: submit }], RANK.panel);
  const change = (patch: Partial<PiiPolicy>): void => {
    setDraft({ ...draft, ...patch });
  };
  const refused = changeError(save.error) ?? changeError(test.error);
  return (
    <form
      className={costs.form}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label className={costs.check}>
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={({ target }) => {
            change({ enabled: target.checked });
          }}
        />
        Redact events before they are stored
      </label>
      <RuleFields draft={draft} onChange={change} />
      <Patterns custom={draft.custom} refused={patternError(refused)} onChange={change} />
      <TestText text={text} test={test} onText={setText} />
      {refused !== null && patternError(refused) === null && (
        <p role="alert" className={costs.error}>
          {refused}
        </p>
      )}
      <div className={costs.buttons}>
        <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={!isChanged} busy={save.isPending}>
          Save rules
        </Button>
        {isChanged && (
          <Button
            look="quiet"
            onClick={() => {
              setDraft(stored);
            }}
          >
            Discard changes
          </Button>
        )}
      </div>
    </form>
  );
}

type Change = (patch: Partial<PiiPolicy>) => void;

function RuleFields({ draft, onChange }: { draft: PiiPolicy; onChange: Change }): ReactElement {
  return (
    <div className={costs.columns}>
      <KindFields kinds={draft.kinds} onChange={onChange} />
      <Field label="Replace by" hint="A hash is the same for the same value within the organization">
        {(control) => (
          <Select
            {...control}
            value={draft.mode}
            onChange={({ target }) => {
              onChange({ mode: target.value === 'hash' ? 'hash' : 'redact' });
            }}
          >
            <option value="redact">Its label: [EMAIL]</option>
            <option value="hash">Its label and a hash: [EMAIL:3f0a…]</option>
          </Select>
        )}
      </Field>
    </div>
  );
}

interface TestTextProps {
  text: string;
  test: ReturnType<typeof usePiiTest>;
  onText: (text: string) => void;
}

/** A text, and what the rules make of it. */
function TestText({ text, test, onText }: TestTextProps): ReactElement {
  return (
    <>
      <Field label="Test text" hint="Nothing of it is stored. Redaction counts as enabled, and replaces by label">
        {(control) => (
          <textarea
            {...control}
            className={styles.text}
            maxLength={TEXT_CHARS_MAX}
            rows={3}
            spellCheck={false}
            value={text}
            onChange={({ target }) => {
              onText(target.value);
            }}
          />
        )}
      </Field>
      {text !== '' && test.data !== undefined && test.error === null && (
        <div role="status" aria-label="Redacted test text">
          <pre className={styles.result}>{test.data.text}</pre>
          <p className={costs.small}>
            {test.data.found.length === 0
              ? 'The rules find nothing in it.'
              : `Found: ${test.data.found.map(oneLine).join(', ')}`}
          </p>
        </div>
      )}
    </>
  );
}

function KindFields({ kinds, onChange }: { kinds: PiiPolicy['kinds']; onChange: Change }): ReactElement {
  return (
    <fieldset className={styles.group}>
      <legend>Kinds of personal data</legend>
      {KINDS.map(([kind, words]) => (
        <label key={kind} className={costs.check}>
          <input
            type="checkbox"
            checked={kinds.includes(kind)}
            onChange={({ target }) => {
              onChange({ kinds: target.checked ? [...kinds, kind] : kinds.filter((one) => one !== kind) });
            }}
          />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

interface PatternsProps {
  custom: PiiPolicy['custom'];
  refused: ReturnType<typeof patternError>;
  onChange: Change;
}

function Patterns({ custom, refused, onChange }: PatternsProps): ReactElement {
  const put = (index: number, patch: Partial<PiiPolicy['custom'][number]>): void => {
    onChange({ custom: custom.map((one, at) => (at === index ? { ...one, ...patch } : one)) });
  };
  const errorOf = (index: number, field: 'label' | 'pattern'): string | null =>
    refused?.index === index && refused.field === field ? refused.words : null;
  return (
    <fieldset className={styles.group}>
      <legend>Own patterns</legend>
      {custom.map(({ label, pattern }, index) => (
        <div key={index} className={styles.pattern}>
          <Field label={`Label ${index + 1}`} error={errorOf(index, 'label')}>
            {(control) => (
              <Input
                {...control}
                maxLength={LABEL_CHARS_MAX}
                value={label}
                onChange={({ target }) => {
                  put(index, { label: target.value });
                }}
              />
            )}
          </Field>
          <Field label={`Pattern ${index + 1}`} error={errorOf(index, 'pattern')}>
            {(control) => (
              <Input
                {...control}
                maxLength={PATTERN_CHARS_MAX}
                value={pattern}
                onChange={({ target }) => {
                  put(index, { pattern: target.value });
                }}
              />
            )}
          </Field>
          <Button
            look="quiet"
            icon="trash"
            hint={`Remove pattern ${index + 1}`}
            onClick={() => {
              onChange({ custom: custom.filter((_, at) => at !== index) });
            }}
          />
        </div>
      ))}
      <p className={costs.small}>
        Regular expressions in the syntax of RE2; a match is replaced by its label in brackets.
      </p>
      {custom.length < PATTERNS_MAX && (
        <div>
          <Button
            icon="plus"
            onClick={() => {
              onChange({ custom: [...custom, { label: '', pattern: '' }] });
            }}
          >
            Add pattern
          </Button>
        </div>
      )}
    </fieldset>
  );
}
