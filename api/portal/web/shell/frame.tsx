// The frame of a page of an organization: rail, top bar with the title, banner, the screen, and what
// lies above it (palette, overlay of keys, login, messages).
import { type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';
import { usePathname } from 'wouter/use-browser-location';
import { useOrganization } from '../client/session.ts';
import { Toasts } from '../ui/toast.tsx';
import { Banner } from './banner.tsx';
import styles from './frame.module.css';
import { useFrameKeys } from './frame_keys.ts';
import { KeysOverlay } from './keys_overlay.tsx';
import { keepLastOrg } from './last_org.ts';
import { Palette } from './palette.tsx';
import { Rail } from './rail.tsx';
import { TopBar } from './top_bar.tsx';

/** The frame around a screen. */
export function Frame({ title, children }: { title: string; children: ReactNode }): ReactElement {
  const { org_id } = useOrganization();
  const [railOpen, setRailOpen] = useState(false);
  const [layer, setLayer] = useState<'palette' | 'keys' | null>(null);
  const main = useRef<HTMLElement>(null);
  const path = usePathname();
  useFrameKeys(setLayer);
  useEffect(() => {
    keepLastOrg(org_id);
  }, [org_id]);
  useFocusOnNavigation(main, path);
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <Rail
        open={railOpen}
        onNavigate={() => {
          setRailOpen(false);
        }}
      />
      <div className={styles.column}>
        <TopBar
          title={title}
          railOpen={railOpen}
          onRail={() => {
            setRailOpen(!railOpen);
          }}
          onLayer={setLayer}
        />
        <Banner />
        <main ref={main} id="main" tabIndex={-1} className={styles.main}>
          {children}
        </main>
      </div>
      <Toasts />
      {layer === 'palette' && (
        <Palette
          onClose={() => {
            setLayer(null);
          }}
        />
      )}
      {layer === 'keys' && (
        <KeysOverlay
          onClose={() => {
            setLayer(null);
          }}
        />
      )}
    </div>
  );
}

/**
 * After a navigation the focus goes to the content, unless the screen has put it there already. The
 * first page keeps the browser's own focus.
 */
function useFocusOnNavigation(main: { current: HTMLElement | null }, path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    if (main.current?.contains(document.activeElement) !== true) main.current?.focus({ preventScroll: true });
  }, [main, path]);
}
