// A value that changes while somebody types, taken once they pause.
import { useEffect, useState } from 'react';

const PAUSE_MS = 200;

/** Returns the value as it was when it had not changed for 200 ms. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(value);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [value]);
  return settled;
}
