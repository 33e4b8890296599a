// The rail of filters, open or closed. The choice is kept in this browser; narrow screens begin closed.
import { useCallback, useEffect, useRef, useState } from 'react';

const KEY = 'millrace.facets';

function stored(): boolean {
  if (matchMedia('(width < 1200px)').matches) return false;
  try {
    return localStorage.getItem(KEY) !== 'closed';
  } catch {
    return true;
  }
}

/** Returns whether the rail is open, and the function that opens it with the focus on it, or closes it. */
export function useRail(): { open: boolean; toggle: () => void } {
  const [open, setOpen] = useState(stored);
  const focuses = useRef(false);
  const toggle = useCallback(() => {
    focuses.current = true;
    setOpen((now) => !now);
  }, []);
  useEffect(() => {
    if (!focuses.current) return;
    try {
      localStorage.setItem(KEY, open ? 'open' : 'closed');
    } catch {
      // The choice holds for this page.
    }
    if (open) document.getElementById('facets')?.focus();
  }, [open]);
  return { open, toggle };
}
