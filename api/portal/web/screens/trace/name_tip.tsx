// Shows the whole name of a row where the column cuts it: of the row under the pointer, and of the
// selected row while the waterfall has the focus. One layer serves all rows. It stays while the pointer
// is on it, and Escape hides it (WCAG 1.4.13).
import { type ReactElement, type RefObject, useEffect, useRef } from 'react';
import { cx } from '../../ui/cx.ts';
import styles from '../../ui/layer.module.css';
import { placeLayer } from '../../ui/place.ts';

/** Marks the element of a row that holds its name. */
export const NAME_ATTRIBUTE = 'data-row-name';
const SHOW_MS = 300;
const HIDE_MS = 100;

const nameIn = (element: Element | null): Element | null => element?.querySelector(`[${NAME_ATTRIBUTE}]`) ?? null;
const nameAt = ({ target }: Event): Element | null =>
  target instanceof Element ? target.closest(`[${NAME_ATTRIBUTE}]`) : null;

/** Fills and shows the layer beside a name that is cut; a name that is shown whole has no layer. */
function show(layer: HTMLElement, name: Element | null): void {
  if (name?.isConnected !== true || name.scrollWidth <= name.clientWidth) return;
  layer.textContent = name.textContent;
  layer.showPopover();
  placeLayer(layer, name);
}

/**
 * Shows and hides the layer by pointer and focus.
 * @returns the function that ends this
 */
function follow(layer: HTMLElement, grid: HTMLElement, selectedId: string): () => void {
  const ending = new AbortController();
  let timer = 0;
  let pointed: Element | null = null;
  const later = (run: () => void, ms: number): void => {
    clearTimeout(timer);
    timer = window.setTimeout(run, ms);
  };
  const hide = (): void => {
    clearTimeout(timer);
    layer.hidePopover();
  };
  const hideLater = (): void => {
    later(hide, HIDE_MS);
  };
  const showSelected = (): void => {
    if (!grid.matches(':focus-visible')) return;
    later(() => {
      show(layer, nameIn(document.getElementById(selectedId)));
    }, SHOW_MS);
  };
  const options = { signal: ending.signal, passive: true };
  const onOver = (event: Event): void => {
    const name = nameAt(event);
    const isSame = name === pointed && layer.matches(':popover-open');
    pointed = name;
    if (isSame) clearTimeout(timer);
    else if (name === null) hideLater();
    else
      later(() => {
        hide();
        show(layer, name);
      }, SHOW_MS);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !layer.matches(':popover-open')) return;
    event.stopPropagation();
    hide();
  };
  grid.addEventListener('pointerover', onOver, options);
  grid.addEventListener('pointerleave', hideLater, options);
  grid.addEventListener('scroll', hide, options);
  grid.addEventListener('focusin', showSelected, options);
  grid.addEventListener('focusout', hide, options);
  grid.addEventListener('keydown', onKeyDown, options);
  layer.addEventListener(
    'pointerenter',
    () => {
      clearTimeout(timer);
    },
    options,
  );
  layer.addEventListener('pointerleave', hideLater, options);
  showSelected();
  return () => {
    ending.abort();
    hide();
  };
}

interface NameTipProps {
  grid: RefObject<HTMLElement | null>;
  /** Id of the element of the selected row. */
  selectedId: string;
}

export function NameTip({ grid, selectedId }: NameTipProps): ReactElement {
  const layer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (grid.current === null || layer.current === null) return undefined;
    return follow(layer.current, grid.current, selectedId);
  }, [grid, selectedId]);
  return <div ref={layer} role="tooltip" popover="manual" className={cx(styles.layer, styles.tooltip)} />;
}
