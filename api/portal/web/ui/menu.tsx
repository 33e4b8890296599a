// A menu behind a button, after the menu button pattern of the ARIA Authoring Practices: arrows,
// Home, End and first letters move, Enter chooses, Escape closes and returns the focus.
import { type KeyboardEvent, type ReactElement, type ReactNode, useRef, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { Button } from './button.tsx';
import { cx } from './cx.ts';
import { Icon, type IconName } from './icons.tsx';
import styles from './layer.module.css';
import { placeLayer } from './place.ts';

export interface MenuItem {
  label: string;
  icon?: IconName;
  /** Shortcut or count at the end of the line. */
  aside?: string;
  /** Address to go to, or the action to run. */
  href?: string;
  onSelect?: () => void;
  danger?: boolean;
  disabled?: boolean;
  /** True: a line stands above this item. */
  apart?: boolean;
}

interface MenuProps {
  items: readonly MenuItem[];
  /** Name of the menu, and of its button where the button shows only an icon. */
  label: string;
  icon?: IconName;
  look?: 'plain' | 'quiet';
  align?: 'start' | 'end';
  /** Content of the button; absent: the icon alone. */
  children?: ReactNode;
}

const itemsOf = (layer: HTMLElement | null): HTMLElement[] => [
  ...(layer?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? []),
];

/** Returns the item to focus for a key; null for keys that move nothing. */
function target(key: string, items: readonly HTMLElement[], at: number): HTMLElement | null {
  if (key === 'ArrowDown') return items[(at + 1) % items.length] ?? null;
  if (key === 'ArrowUp') return items[(at - 1 + items.length) % items.length] ?? null;
  if (key === 'Home') return items[0] ?? null;
  if (key === 'End') return items.at(-1) ?? null;
  if (key.length !== 1) return null;
  const after = [...items.slice(at + 1), ...items.slice(0, at + 1)];
  return after.find((item) => item.textContent.trim().toLowerCase().startsWith(key.toLowerCase())) ?? null;
}

/** A button that opens a menu. */
export function Menu({ items, label, icon, look = 'plain', align = 'start', children }: MenuProps): ReactElement {
  const button = useRef<HTMLButtonElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const show = (last = false): void => {
    if (layer.current === null || button.current === null) return;
    layer.current.showPopover();
    placeLayer(layer.current, button.current, align);
    (last ? itemsOf(layer.current).at(-1) : itemsOf(layer.current)[0])?.focus();
  };
  const close = (): void => {
    layer.current?.hidePopover();
    button.current?.focus();
  };
  const choose = ({ disabled = false, href, onSelect }: MenuItem): void => {
    if (disabled) return;
    close();
    onSelect?.();
    if (href !== undefined) navigate(href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = itemsOf(layer.current);
    if (event.key === 'Tab') close();
    if (event.key === 'Tab' || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = target(event.key, all, all.indexOf(document.activeElement as HTMLElement));
    event.stopPropagation();
    if (next === null) return;
    event.preventDefault();
    next.focus();
  };
  return (
    <>
      <Button
        ref={button}
        look={look}
        {...(icon === undefined ? {} : { icon })}
        {...(children === undefined ? { hint: label } : { 'aria-label': label })}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => {
          if (open) close();
          else show();
        }}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
          event.preventDefault();
          show(event.key === 'ArrowUp');
        }}
      >
        {children}
      </Button>
      <div
        ref={layer}
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        className={styles.layer}
        onToggle={(event) => {
          setOpen(event.newState === 'open');
        }}
        onKeyDown={onKeyDown}
      >
        {items.map((item) => (
          <MenuLine key={item.label} item={item} onChoose={choose} />
        ))}
      </div>
    </>
  );
}

function MenuLine({ item, onChoose }: { item: MenuItem; onChoose: (item: MenuItem) => void }): ReactElement {
  return (
    <>
      {item.apart === true && <div role="separator" className={styles.line} />}
      <button
        type="button"
        role="menuitem"
        tabIndex={-1}
        aria-disabled={item.disabled}
        className={cx(styles.item, item.danger === true && styles.danger)}
        onClick={() => {
          onChoose(item);
        }}
      >
        {item.icon !== undefined && <Icon name={item.icon} />}
        <span className={styles.label}>{item.label}</span>
        {item.aside !== undefined && <span className={styles.aside}>{item.aside}</span>}
      </button>
    </>
  );
}
