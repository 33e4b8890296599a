// Start: from an empty organization to the first trace. A key is made here or pasted, the snippets
// hold it, and a line below listens until a trace arrives.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Arrivals } from './arrivals.tsx';
import { KeyStep } from './key_step.tsx';
import { KEY_PLACEHOLDER, type Snippet, snippetsFor } from './snippets.ts';
import { Refused } from './refused.tsx';
import styles from './start.module.css';

/** The page. */
export default function StartScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [key, setKey] = useState('');
  const [opened] = useState(() => Date.now());
  return (
    <div className={pages.page}>
      <section className={styles.step} aria-labelledby="start-key">
        <h2 id="start-key">1. A key for the program that sends</h2>
        <KeyStep value={key} onKey={setKey} />
      </section>
      <section className={styles.step} aria-labelledby="start-send">
        <h2 id="start-send">2. Send a trace</h2>
        <Snippets snippets={snippetsFor({ url: location.origin, org_id, key: key === '' ? KEY_PLACEHOLDER : key })} />
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

function Snippets({ snippets }: { snippets: readonly Snippet[] }): ReactElement {
  const [chosen, setChosen] = useState('curl');
  const shown = snippets.find(({ id }) => id === chosen);
  return (
    <div className={styles.snippets}>
      <Tabs
        label="Ways to send"
        tabs={snippets.map(({ id, title }) => ({ id, label: title }))}
        selected={chosen}
        onSelect={setChosen}
      >
        <p className={styles.about}>{shown?.about}</p>
        {shown?.blocks.map(({ language, text }) => (
          <div key={language} className={styles.block}>
            <div className={styles.blockHead}>
              <span>{language}</span>
              <CopyButton text={text} label={`Copy ${language}`} labelled />
            </div>
            {/* A region that scrolls must be reachable by keyboard. */}
            <pre tabIndex={0} aria-label={`${shown.title}, ${language}`} role="region" className={styles.code}>
              {text}
            </pre>
          </div>
        ))}
      </Tabs>
    </div>
  );
}
