// Buttons, and links that look like buttons. The text says what happens; `keys` names the shortcut.
import type { ComponentPropsWithRef, ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './button.module.css';
import { cx } from './cx.ts';
import { Icon, type IconName } from './icons.tsx';

interface Look {
  /** `primary` once on a page, `danger` for what cannot be undone, `quiet` inside of bars and rows. */
  look?: 'plain' | 'primary' | 'danger' | 'quiet' | undefined;
  icon?: IconName | undefined;
  /** Shortcut as it is shown in the tooltip, for example `c`. */
  keys?: string | undefined;
}

type ButtonProps = Look &
  Omit<ComponentPropsWithRef<'button'>, 'title'> & {
    /** True while the action runs: the button stays focusable and does nothing. */
    busy?: boolean;
    /** Tooltip; the name of the button where it shows only an icon. */
    hint?: string | undefined;
  };

const titleOf = (hint: string | undefined, keys: string | undefined): string | undefined =>
  keys === undefined ? hint : `${hint ?? 'Shortcut'} (${keys})`;

/** A button. Without children it shows its icon only, and `hint` is its name. */
export function Button({
  look = 'plain',
  icon,
  keys,
  busy = false,
  hint,
  className,
  children,
  onClick,
  ...rest
}: ButtonProps): ReactElement {
  const bare = children === undefined;
  return (
    <button
      type="button"
      className={cx(styles.button, styles[look], bare && styles.bare, className)}
      title={titleOf(hint, keys)}
      aria-label={bare ? hint : undefined}
      aria-busy={busy || undefined}
      aria-keyshortcuts={keys}
      onClick={busy ? undefined : onClick}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A link with the look of a button. */
export function ButtonLink({
  href,
  look = 'plain',
  icon,
  keys,
  children,
}: Look & { href: string; children: ReactNode }): ReactElement {
  return (
    <Link
      href={href}
      className={cx(styles.button, styles[look])}
      title={titleOf(undefined, keys)}
      aria-keyshortcuts={keys}
    >
      <>
        {icon !== undefined && <Icon name={icon} />}
        {children}
      </>
    </Link>
  );
}
