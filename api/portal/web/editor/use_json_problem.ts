// Checks a text as JSON after a pause in typing.
import { useEffect, useState } from 'react';
import { type JsonProblem, jsonProblem } from './json_problem.ts';

/** Pause after the last key before a text is checked. */
const PAUSE_MS = 250;

interface Checked {
  text: string;
  problem: JsonProblem | null;
}

/**
 * Returns the first syntax error of the last text that was checked, and whether that is the given text.
 * @param text null: nothing is checked
 */
export function useJsonProblem(text: string | null): { problem: JsonProblem | null; isCurrent: boolean } {
  const [checked, setChecked] = useState<Checked>(() => checkedOf(text));
  useEffect(() => {
    const timer = setTimeout(() => {
      setChecked(checkedOf(text));
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [text]);
  return { problem: text === null ? null : checked.problem, isCurrent: checked.text === text };
}

const checkedOf = (text: string | null): Checked => ({
  text: text ?? '',
  problem: text === null ? null : jsonProblem(text),
});
