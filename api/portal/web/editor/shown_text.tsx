// The text of an editor as it is seen: coloured, and for JSON with the numbers of its lines. It lies below the
// field, which has the same letters in no colour, so each line must break where the field breaks it.
import { memo, type ReactElement, useEffect, useRef, useState } from 'react';
import styles from './editor.module.css';
import type { JsonProblem } from './json_problem.ts';
import { type EditorLanguage, jsonPieces, lineGroups, type Piece, templatePieces, withProblem } from './marked_text.ts';

/** Lines that are rendered again when one of them changes. */
const GROUP_LINES = 64;
/** A longer text has neither colours nor numbers, as each of its lines would be an element. */
const NUMBERED_CHARS_MAX = 2_000_000;
/** Lines that are so close to the visible ones have their colours before they are scrolled to. */
const AHEAD = '400px';

interface ShownTextProps {
  text: string;
  language: EditorLanguage;
  /** Names that have a value; null marks none as unknown. */
  known: ReadonlySet<string> | null;
  problem: JsonProblem | null;
}

/** The text. */
export function ShownText({ text, language, known, problem }: ShownTextProps): ReactElement {
  if (language === 'template' || text.length > NUMBERED_CHARS_MAX)
    return (
      <div aria-hidden="true" className={styles.shown}>
        {language === 'template' ? <Pieces pieces={templatePieces(text, known)} /> : text}
        {/* A line break at the end of a block takes no line of its own without a character after it. */}
        {'\u200b'}
      </div>
    );
  let begin = 0;
  return (
    <div aria-hidden="true" className={styles.shown}>
      {lineGroups(text, GROUP_LINES).map((lines, at) => {
        const group = lines.join('\n');
        const from = (problem?.from ?? 0) - begin;
        const to = (problem?.to ?? 0) - begin;
        begin += group.length + 1;
        const isMarked = problem !== null && to > 0 && from <= group.length;
        // Groups have no identity but their place.
        return <Lines key={at} text={group} from={isMarked ? from : 0} to={isMarked ? to : 0} />;
      })}
    </div>
  );
}

/**
 * Some lines of JSON, with a syntax error between two offsets; none where both are 0. Lines that are not on the screen
 * have no colours: their elements would make a large text slow to open.
 */
const Lines = memo(function Lines({ text, from, to }: { text: string; from: number; to: number }): ReactElement {
  const group = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (group.current === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        setSeen(entries.at(-1)?.isIntersecting === true);
      },
      // Browsers that do not know the margin colour the lines when they appear.
      { scrollMargin: AHEAD },
    );
    observer.observe(group.current);
    return () => {
      observer.disconnect();
    };
  }, []);
  let begin = 0;
  return (
    <div ref={group}>
      {text.split('\n').map((line, at) => {
        const pieces = isSeen ? withProblem(jsonPieces(line), from - begin, to - begin) : null;
        begin += line.length + 1;
        return (
          <div key={at} className={styles.line}>
            {pieces === null ? line : <Pieces pieces={pieces} />}
          </div>
        );
      })}
    </div>
  );
});

function Pieces({ pieces }: { pieces: readonly Piece[] }): ReactElement {
  return (
    <>
      {pieces.map(({ text, look }, at) =>
        look === null ? (
          text
        ) : (
          <span key={at} className={styles[look]}>
            {text}
          </span>
        ),
      )}
    </>
  );
}
