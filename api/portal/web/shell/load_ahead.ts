// Loads the chunk of a page when the pointer or the focus comes to a link to it, so that the click
// finds it there.
import { matchRoute } from './match_route.ts';
import { ORG_ROUTES } from './routes.tsx';

function loadTarget({ target }: Event): void {
  const link = target instanceof Element ? target.closest('a') : null;
  if (link === null || link.origin !== location.origin) return;
  matchRoute(ORG_ROUTES, link.pathname)
    ?.route.load()
    // The navigation itself tries again and shows the failure.
    .catch(() => undefined);
}

/** Listens for links; called once. */
export function loadAhead(): void {
  addEventListener('pointerover', loadTarget, { passive: true });
  addEventListener('focusin', loadTarget);
}
