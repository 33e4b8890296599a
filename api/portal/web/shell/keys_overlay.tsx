// The overlay of `?`: the shortcuts of everything on the screen, the innermost part first.
import type { ReactElement } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { shownKeys } from './key_names.ts';
import { useScopes } from './keys.ts';
import styles from './keys_overlay.module.css';
import { usePreferences } from './preferences.ts';

export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The presses of a shortcut, each as a key. */
export function Keys({ keys }: { keys: string }): ReactElement {
  return (
    <span className={styles.keys}>
      {shownKeys(keys, isMac).map((press, at) => (
        <kbd key={`${at}:${press}`}>{press}</kbd>
      ))}
    </span>
  );
}

/** The list of shortcuts. */
export function KeysOverlay({ onClose }: { onClose: () => void }): ReactElement {
  const scopes = useScopes()
    .toReversed()
    .filter(({ bindings }) => bindings.length > 0);
  const { letter_keys } = usePreferences();
  return (
    <Dialog title="Shortcuts" form="wide" onClose={onClose}>
      {!letter_keys && (
        <p className={styles.note}>Shortcuts that are a single letter are off. Preferences turn them on.</p>
      )}
      <div className={styles.scopes}>
        {scopes.map((scope) => (
          <section key={scope.name}>
            <h3>{scope.name}</h3>
            <dl className={styles.list}>
              {scope.bindings.map((binding) => (
                <div key={binding.label} className={styles.line}>
                  <dt>
                    {[binding.keys].flat().map((keys) => (
                      <Keys key={keys} keys={keys} />
                    ))}
                  </dt>
                  <dd>{binding.label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
