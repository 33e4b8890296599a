// Start: from an empty organization to the first trace. A key is made here or pasted, the snippets
// hold it, and a line below listens until a trace arrives. Copying a snippet makes the key it needs.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { Button } from '../../ui/button.tsx';
import { CopyButton, copyText } from '../../ui/copy_button.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { toast } from '../../ui/toast.tsx';
import { Arrivals } from './arrivals.tsx';
import { KeyStep, type StartKey, useStartKey } from './key_step.tsx';
import { KEY_PLACEHOLDER, type Snippet, snippetsFor } from './snippets.ts';
import { Refused } from './refused.tsx';
import styles from './start.module.css';

/** The page. */
export default function StartScreen(): ReactElement {
  const startKey = useStartKey();
  const [opened] = useState(() => Date.now());
  return (
    <div className={pages.page}>
      <section className={styles.step} aria-labelledby="start-key">
        <h2 id="start-key">1. A key for the program that sends</h2>
        <KeyStep startKey={startKey} />
      </section>
      <section className={styles.step} aria-labelledby="start-send">
        <h2 id="start-send">2. Send a trace</h2>
        <Snippets startKey={startKey} />
        <p className={styles.hint}>
          Without a program of your own: <code>npm run demo</code> in the folder of the service sends the runs of a
          sample agent.
        </p>
      </section>
      <section className={styles.step} aria-labelledby="start-arrived">
        <h2 id="start-arrived">3. See it arrive</h2>
        <Arrivals since={opened} />
        <Refused />
      </section>
    </div>
  );
}

/** Returns the snippets with a key, or with the place of one. */
function useSnippets(): (key: string) => Snippet[] {
  const { org_id } = useOrganization();
  return (key) => snippetsFor({ url: location.origin, org_id, key: key === '' ? KEY_PLACEHOLDER : key });
}

function Snippets({ startKey }: { startKey: StartKey }): ReactElement {
  const [chosen, setChosen] = useState('curl');
  const snippets = useSnippets();
  const blocksFor = (key: string): Snippet['blocks'] => snippets(key).find(({ id }) => id === chosen)?.blocks ?? [];
  const shown = snippets(startKey.value);
  const { title = '', about } = shown.find(({ id }) => id === chosen) ?? {};
  return (
    <div className={styles.snippets}>
      <Tabs
        label="Ways to send"
        tabs={shown.map(({ id, title }) => ({ id, label: title }))}
        selected={chosen}
        onSelect={setChosen}
      >
        <p className={styles.about}>{about}</p>
        {blocksFor(startKey.value).map(({ language, text }, index) => (
          <div key={language} className={styles.block}>
            <div className={styles.blockHead}>
              <span>{language}</span>
              <Copy startKey={startKey} language={language} textWith={(key) => blocksFor(key)[index]?.text ?? ''} />
            </div>
            {/* A region that scrolls must be reachable by keyboard. */}
            <pre tabIndex={0} aria-label={`${title}, ${language}`} role="region" className={styles.code}>
              {text}
            </pre>
          </div>
        ))}
      </Tabs>
    </div>
  );
}

interface CopyProps {
  startKey: StartKey;
  language: string;
  /** Returns the snippet with a key in it. */
  textWith: (key: string) => string;
}

/** Copies a snippet; before there is a key, it makes one for it. */
function Copy({ startKey: { value, busy, make }, language, textWith }: CopyProps): ReactElement {
  const noun = language === 'sh' ? 'command' : 'code';
  if (value !== '' || make === null) return <CopyButton text={textWith(value)} label={`Copy ${noun}`} labelled />;
  const makeAndCopy = async (): Promise<void> => {
    const key = await make();
    if (key === null) return;
    const copied = await copyText(textWith(key));
    toast({ text: copied ? `Copied the ${noun} with a new key.` : 'Copying failed; the text below has the key.' });
  };
  return (
    <Button icon="copy" busy={busy} onClick={() => void makeAndCopy()}>
      Create key and copy {noun}
    </Button>
  );
}
