// Copies a text. navigator.clipboard exists only in a secure context; elsewhere a hidden field and
// the copy command do it.
import { type ReactElement, useEffect, useState } from 'react';
import { Button } from './button.tsx';
import type { IconName } from './icons.tsx';

const SAID_MS = 1500;

/** Copies a text to the clipboard and returns true if that worked. */
export async function copyText(text: string): Promise<boolean> {
  const { clipboard } = navigator as { clipboard?: Clipboard };
  if (clipboard !== undefined) {
    try {
      await clipboard.writeText(text);
      return true;
    } catch {
      // The browser refused, for example because the page has no focus.
    }
  }
  return copyByCommand(text);
}

function copyByCommand(text: string): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.style.position = 'fixed';
  field.style.opacity = '0';
  const before = document.activeElement;
  // A modal dialog makes everything outside of it inert.
  (document.querySelector('dialog:modal') ?? document.body).append(field);
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without a secure context
  const copied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

interface CopyButtonProps {
  /** The text, or the function that makes it when it is needed. */
  text: string | (() => string);
  /** Name of the button, for example "Copy trace id". */
  label: string;
  /** True: the label is shown beside the icon. */
  labelled?: boolean;
  keys?: string;
  /** Shown instead of the two sheets. */
  icon?: IconName;
  onCopied?: () => void;
}

/** A button that copies a text and says that it did. */
export function CopyButton(props: CopyButtonProps): ReactElement {
  const { text, label, labelled = false, keys, icon = 'copy', onCopied } = props;
  const [said, setSaid] = useState<'copied' | 'failed' | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = setTimeout(() => {
      setSaid(null);
    }, SAID_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [said]);
  const words = said === null ? label : said === 'copied' ? 'Copied' : 'Copying failed';
  return (
    <>
      <Button
        look={labelled ? 'plain' : 'quiet'}
        icon={said === 'copied' ? 'check' : icon}
        hint={labelled ? undefined : words}
        keys={keys}
        onClick={() => {
          void copyText(typeof text === 'string' ? text : text()).then((copied) => {
            setSaid(copied ? 'copied' : 'failed');
            if (copied) onCopied?.();
          });
        }}
      >
        {labelled ? words : undefined}
      </Button>
      <span className="visually-hidden" role="status">
        {said === null ? '' : words}
      </span>
    </>
  );
}
