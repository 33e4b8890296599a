// Images that come from texts of users. Nothing is requested from another host: a
// foreign image is a link, and an image inside of the text appears when asked for.
import { type ReactElement, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { isInlineImage, safeAddress } from './addresses.ts';
import styles from './text.module.css';

/** An image of a text. */
export function ImageLink({ url, alt }: { url: string; alt: string }): ReactElement {
  const [isShown, setShown] = useState(false);
  const name = alt === '' ? 'image' : alt;
  if (isInlineImage(url)) {
    return isShown ? (
      <img src={url} alt={name} className={styles.image} />
    ) : (
      <Button
        look="quiet"
        icon="eye"
        onClick={() => {
          setShown(true);
        }}
      >
        Show {name}
      </Button>
    );
  }
  const address = safeAddress(url);
  return address === null ? (
    <span>[{name}]</span>
  ) : (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
      {name} ({address.length > 80 ? `${address.slice(0, 80)}…` : address})
    </a>
  );
}
