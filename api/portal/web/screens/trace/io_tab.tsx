// The tab Input/Output: prompt and response exactly as they are stored.
import type { ReactElement } from 'react';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { TextSection } from './text_section.tsx';
import type { SpanDetail, TextSide } from './trace_api.ts';
import { loadingWords, NoTexts, useWholeText } from './whole_texts.tsx';
import styles from './span_panel.module.css';

const TITLES: Record<'llm' | 'other', Record<TextSide, string>> = {
  llm: { prompt: 'Prompt', response: 'Response' },
  other: { prompt: 'Input', response: 'Output' },
};

export function InputOutputTab({ traceId, detail }: { traceId: string; detail: SpanDetail }): ReactElement {
  if (detail.text_state !== 'here') return <NoTexts traceId={traceId} detail={detail} />;
  return (
    <>
      <Side traceId={traceId} detail={detail} side="prompt" />
      <Side traceId={traceId} detail={detail} side="response" />
    </>
  );
}

function Side({ traceId, detail, side }: { traceId: string; detail: SpanDetail; side: TextSide }): ReactElement | null {
  const { text, missing } = useWholeText(traceId, detail, side);
  const title = TITLES[detail.kind === 'llm' ? 'llm' : 'other'][side];
  if (text === '') return null;
  return (
    <>
      <TextSection title={title} text={text} chars={detail.chars[side]} />
      {missing === 'loading' && <p className={styles.quiet}>{loadingWords(detail.chars[side])}</p>}
      {missing !== null && missing !== 'loading' && (
        <ErrorPanel error={missing.error} what="the whole text" onRetry={missing.retry} />
      )}
    </>
  );
}
