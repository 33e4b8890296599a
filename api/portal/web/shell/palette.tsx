// The palette of ⌘K: pages, commands of what is on the screen, saved views, prompts, judges, datasets and
// agents by name, and the thing that a pasted id names. The field keeps the focus; arrows move, Enter runs,
// Ctrl+Enter opens a new tab.
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, type ReactElement, useEffect, useId, useRef, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { apiQuery } from '../client/api.ts';
import { useOrganization } from '../client/session.ts';
import { Dialog } from '../ui/dialog.tsx';
import { useScopes } from './keys.ts';
import { Keys } from './keys_overlay.tsx';
import { type Entry, rank, targetsOf, type Uses } from './palette_match.ts';
import { hasPageOf, useNamed } from './palette_names.ts';
import styles from './palette.module.css';
import { ORG_PATHS } from './rail.tsx';
import { sectionsFor, SETTINGS } from './sections.ts';

interface Line extends Entry {
  keys?: string;
  href?: string;
  run?: () => void;
}

const USES_KEY = 'millrace.palette';

function storedUses(): Uses {
  try {
    return JSON.parse(localStorage.getItem(USES_KEY) ?? '{}') as Uses;
  } catch {
    return {};
  }
}

function countUse(id: string): void {
  const uses = storedUses();
  try {
    localStorage.setItem(USES_KEY, JSON.stringify({ ...uses, [id]: (uses[id] ?? 0) + 1 }));
  } catch {
    // The order stays as it is.
  }
}

/** Returns all lines that the palette can offer for a typed text. */
function useLines(typed: string): Line[] {
  const { org_id, can } = useOrganization();
  const home = `/o/${encodeURIComponent(org_id)}`;
  const scopes = useScopes();
  const views = useQuery({
    ...apiQuery(org_id, '/v1/views', { query: {} }),
    staleTime: 60_000,
    enabled: can('traces:read'),
  });
  const named = useNamed(home);
  const targets = targetsOf(typed, hasPageOf).map(({ label, path }): Line => ({
    id: `open ${path}`,
    label,
    group: 'Open',
    href: home + path,
  }));
  if (typed.startsWith('?')) return targets;
  const pages = sectionsFor(ORG_PATHS, can)
    .flat()
    .map(({ title, path, key }): Line => ({
      id: `page ${path}`,
      label: title,
      group: 'Pages',
      href: home + path,
      ...(key === null ? {} : { keys: `g ${key}` }),
    }));
  const me: Line = { id: 'page /me', label: 'Preferences', group: 'Pages', href: `${home}/me` };
  const settings = SETTINGS.filter(({ permission }) => can(permission)).map(({ id, title }): Line => ({
    id: `page /settings/${id}`,
    label: `Settings: ${title}`,
    group: 'Pages',
    href: `${home}/settings/${id}`,
  }));
  const commands = scopes
    .toReversed()
    .flatMap(({ name, bindings }) => bindings.map((binding) => ({ name, binding })))
    .filter(({ binding }) => binding.silent !== true)
    .map(({ name, binding: { keys, label, run } }): Line => ({
      id: `do ${label}`,
      label,
      group: name === 'Everywhere' ? 'Commands' : name,
      keys: [keys].flat()[0] ?? '',
      run,
    }));
  const saved = (views.data?.data ?? []).map(({ view_id, name, page, query }): Line => ({
    id: `view ${view_id}`,
    label: name,
    group: 'Views',
    aside: page,
    href: `${home}/${page}?${query}`,
  }));
  const onlyCommands = typed.startsWith('>');
  const all = onlyCommands
    ? commands
    : [...pages, me, ...settings, ...saved, ...(typed === '' ? [] : named), ...commands];
  return [...targets, ...rank(all, onlyCommands ? typed.slice(1) : typed, storedUses())];
}

/** The palette. */
export function Palette({ onClose }: { onClose: () => void }): ReactElement {
  const id = useId();
  const [typed, setTyped] = useState('');
  const [marked, setMarked] = useState(0);
  const lines = useLines(typed);
  const at = Math.min(marked, lines.length - 1);
  const choose = (line: Line, newTab: boolean): void => {
    countUse(line.id);
    onClose();
    if (line.href !== undefined && newTab) open(line.href, '_blank', 'noopener');
    else if (line.href !== undefined) navigate(line.href);
    // The dialog gives the focus back first, so that the command finds it where it was.
    else setTimeout(() => line.run?.());
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const line = lines[at];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      setMarked((at + (event.key === 'ArrowDown' ? 1 : -1) + lines.length) % Math.max(1, lines.length));
    } else if (event.key === 'Enter' && line !== undefined) {
      event.preventDefault();
      choose(line, event.ctrlKey || event.metaKey);
    }
  };
  return (
    <Dialog title="Commands and pages" form="palette" bare onClose={onClose}>
      <input
        className={styles.field}
        role="combobox"
        aria-label="Command, page or id"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        placeholder="Type a page, a command or a name, or paste an id; ? searches texts"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setMarked(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Lines id={id} lines={lines} at={at} onChoose={choose} />
    </Dialog>
  );
}

interface LinesProps {
  id: string;
  lines: readonly Line[];
  at: number;
  onChoose: (line: Line, newTab: boolean) => void;
}

function Lines({ id, lines, at, onChoose }: LinesProps): ReactElement {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return (
    <div ref={list} id={`${id}-list`} role="listbox" aria-label="Matches" className={styles.list}>
      {lines.map((line, index) => (
        <div key={line.id}>
          {line.group !== lines[index - 1]?.group && (
            <div className={styles.group} aria-hidden="true">
              {line.group}
            </div>
          )}
          <div
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            className={styles.line}
            onClick={(event) => {
              onChoose(line, event.ctrlKey || event.metaKey);
            }}
          >
            <span className={styles.label}>{line.label}</span>
            {line.aside !== undefined && <span className={styles.aside}>{line.aside}</span>}
            {line.keys !== undefined && line.keys !== '' && <Keys keys={line.keys} />}
          </div>
        </div>
      ))}
      {lines.length === 0 && <p className={styles.none}>Nothing matches.</p>}
    </div>
  );
}
