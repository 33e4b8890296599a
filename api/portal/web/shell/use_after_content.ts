// Holds back what a page can do without at first, so that it takes neither the store nor one of the browser's
// six connections from the content.
import { useIsFetching } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

/** The page has asked for its content by then, and nothing runs: it has it. */
const QUIET_MS = 100;
/** A page whose content takes longer waits no more. */
const WAIT_MS_MAX = 2_000;

/** Returns true once no read of the page is under way, or after two seconds; it stays true from then on. */
export function useAfterContent(): boolean {
  const [isAfter, setAfter] = useState(false);
  const isReading = useIsFetching() > 0;
  useEffect(() => {
    if (isAfter || isReading) return undefined;
    const timer = setTimeout(() => {
      setAfter(true);
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [isAfter, isReading]);
  useEffect(() => {
    const timer = setTimeout(() => {
      setAfter(true);
    }, WAIT_MS_MAX);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  return isAfter;
}
