// Markdown as React elements, by the table below. No HTML text exists at any point: raw HTML in the
// source is shown as the text it is. Addresses are links for http, https and mailto only; foreign
// images are a link, and images of data: addresses appear when asked for.
import type { Nodes, Parents, Root } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { createElement, Fragment, type ReactElement, type ReactNode, useMemo } from 'react';
import { safeAddress } from './addresses.ts';
import { ImageLink } from './image_link.tsx';
import styles from './text.module.css';

const DEPTH_MAX = 60;

export function parseMarkdown(text: string): Root {
  return fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
}

export default function Markdown({ text }: { text: string }): ReactElement {
  const root = useMemo(() => parseMarkdown(text), [text]);
  return (
    <div className={styles.markdown} dir="auto">
      {childrenOf(root, 0)}
    </div>
  );
}

const childrenOf = (node: Parents, depth: number): ReactNode[] =>
  node.children.map((child, index) => elementOf(child, index, depth + 1));

/** How a node becomes an element. Nodes of a type that is not here show their children, or nothing. */
type Table = { [T in Nodes['type']]?: (node: Extract<Nodes, { type: T }>, key: number, depth: number) => ReactNode };

const plain =
  (tag: string) =>
  (node: Parents, key: number, depth: number): ReactNode =>
    createElement(tag, { key }, ...childrenOf(node, depth));

const ELEMENTS: Table = {
  paragraph: plain('p'),
  blockquote: plain('blockquote'),
  emphasis: plain('em'),
  strong: plain('strong'),
  delete: plain('s'),
  tableRow: plain('tr'),
  tableCell: plain('td'),
  text: ({ value }) => value,
  html: ({ value }, key) => <code key={key}>{value}</code>,
  inlineCode: ({ value }, key) => <code key={key}>{value}</code>,
  code: ({ value }, key) => (
    <pre key={key} tabIndex={0}>
      <code>{value}</code>
    </pre>
  ),
  break: (_, key) => <br key={key} />,
  thematicBreak: (_, key) => <hr key={key} />,
  // Headings of a text are below those of the page.
  heading: (node, key, depth) => createElement(`h${Math.min(6, node.depth + 3)}`, { key }, ...childrenOf(node, depth)),
  list: (node, key, depth) =>
    node.ordered === true ? (
      <ol key={key} start={node.start ?? 1}>
        {childrenOf(node, depth)}
      </ol>
    ) : (
      <ul key={key}>{childrenOf(node, depth)}</ul>
    ),
  listItem: (node, key, depth) => (
    <li key={key}>
      {typeof node.checked === 'boolean' && (node.checked ? '☑ ' : '☐ ')}
      {node.children.map((child, index) =>
        // A list without blank lines between its items shows them as lines, not as paragraphs.
        child.type === 'paragraph' && node.spread !== true ? (
          <Fragment key={index}>{childrenOf(child, depth)}</Fragment>
        ) : (
          elementOf(child, index, depth + 1)
        ),
      )}
    </li>
  ),
  table: (node, key, depth) => (
    <div key={key} className={styles.tableScroll} tabIndex={0} role="region" aria-label="Table">
      <table>
        <tbody>{childrenOf(node, depth)}</tbody>
      </table>
    </div>
  ),
  link: (node, key, depth) => {
    const address = safeAddress(node.url);
    const content = childrenOf(node, depth);
    return address === null ? (
      <span key={key}>{content}</span>
    ) : (
      <a key={key} href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>
        {content}
      </a>
    );
  },
  image: ({ url, alt }, key) => <ImageLink key={key} url={url} alt={alt ?? ''} />,
  footnoteReference: ({ identifier }, key) => <sup key={key}>[{identifier}]</sup>,
};

function elementOf(node: Nodes, key: number, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return '…';
  const make = ELEMENTS[node.type] as ((node: Nodes, key: number, depth: number) => ReactNode) | undefined;
  if (make !== undefined) return make(node, key, depth);
  return 'children' in node ? <span key={key}>{childrenOf(node, depth)}</span> : null;
}
