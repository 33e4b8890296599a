// A value that changes while somebody types, taken once they pause.
import { useEffect, useState } from 'react';

const PAUSE_MS = 200;

/**
 * Returns the value as it was when it had not changed for a while.
 * @param ms the pause, milliseconds
 */
export function useSettled<T>(value: T, ms = PAUSE_MS): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(value);
    }, ms);
    return () => {
      clearTimeout(timer);
    };
  }, [value, ms]);
  return settled;
}
