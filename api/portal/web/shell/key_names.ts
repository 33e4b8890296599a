// How shortcuts are written: `j`, `J`, `g t` (one after the other), `Ctrl+Enter`, `Mod+k` (⌘ on a Mac,
// Ctrl elsewhere), `?`, `Space`, `ArrowDown`. Pure: translation for tinykeys, and the form on screens.

/** Returns a shortcut in the form of tinykeys. */
export function tinyKeys(keys: string): string {
  return keys.split(' ').map(tinyPress).join(' ');
}

function tinyPress(press: string): string {
  const parts = press === '+' ? ['+'] : press.split('+').map((part) => (part === '' ? '+' : part));
  const key = parts.at(-1) ?? press;
  const modifiers = [...new Set(parts.slice(0, -1))].map((name) =>
    name === 'Mod' ? '$mod' : name === 'Ctrl' ? 'Control' : name,
  );
  if (key === 'Space') return [...modifiers, ' '].join('+').replace(' ', 'Space');
  // A capital letter needs Shift; where a sign needs it depends on the layout of the keyboard.
  if (/^[A-Z]$/.test(key) && !modifiers.includes('Shift')) modifiers.push('Shift');
  if (key.length === 1 && !/^[A-Za-z]$/.test(key) && modifiers.length === 0) modifiers.push('[Shift]');
  return [...modifiers, key === '+' ? '(\\+)' : key].join('+');
}

const SIGNS: Readonly<Record<string, string>> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
};

/** Returns the keys of a shortcut as they are shown, one text for each press. */
export function shownKeys(keys: string, mac: boolean): string[] {
  return keys.split(' ').map((press) => {
    if (press === '+') return '+';
    const named = press.split('+').map((part) => SIGNS[part] ?? (part === 'Mod' ? (mac ? '⌘' : 'Ctrl') : part));
    if (named.length === 1) return named[0] ?? press;
    const key = named.at(-1) ?? '';
    const pressed = [...named.slice(0, -1), key.length === 1 ? key.toUpperCase() : key];
    return mac && named[0] === '⌘' ? pressed.join('') : pressed.join('+');
  });
}

/** Returns shortcuts that stand more than once in a table. */
export function repeatedKeys(tables: readonly { keys: string | readonly string[] }[]): string[] {
  const all = tables.flatMap(({ keys }) => keys).map(tinyKeys);
  return [...new Set(all.filter((keys, at) => all.indexOf(keys) !== at))];
}

/** Returns true if a shortcut begins with a bare letter, digit or sign, which the person can switch off. */
export const isLetterKey = (keys: string): boolean => (keys.split(' ')[0] ?? '').length === 1;
