// Checks of the layout of a page that axe does not make: texts that are cut without an ellipsis, controls that lie under
// something else, and controls that the Tab key does not reach or whose focus cannot be seen. Each returns one line for
// each defect, which names the element.
import type { Page } from 'playwright-core';

/** Controls of a page: what a person clicks or types into. */
const CONTROLS = 'a[href], button, input, select, textarea, summary, [role="slider"], [role="separator"][tabindex]';
/** Widgets with one tab stop, whose other parts are reached by arrow keys. */
const COMPOSITES =
  '[role="grid"], [role="treegrid"], [role="tablist"], [role="listbox"], [role="menu"], [role="radiogroup"]';
/** Elements up from the one with the focus that may carry its ring. */
const RING_DEPTH = 3;
/** Tab stops of one page, far more than any page has. */
const STOPS_MAX = 400;

/** The functions that checks in the page share; they run there, so they are sent as text. */
const SHARED = `
  const nameOf = (one) => {
    const text = (one.getAttribute('aria-label') ?? one.textContent ?? '').trim().replaceAll(/\\s+/g, ' ').slice(0, 60);
    const role = one.getAttribute('role');
    return one.tagName.toLowerCase() + (role === null ? '' : '[' + role + ']') + ' "' + text + '"';
  };
  const isShown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  // Under an open dialog nothing can be reached.
  const page = [...document.querySelectorAll('dialog')].filter((one) => one.matches(':modal')).at(-1) ?? document;
  const isEnabled = (one) => !one.matches(':disabled') && one.closest('[inert]') === null;
`;

const inPage = async (page: Page, body: string): Promise<string[]> => page.evaluate(`(() => { ${SHARED} ${body} })()`);

/** Returns the texts that their box cuts although no ellipsis shows it. */
export const cutTexts = (page: Page): Promise<string[]> =>
  inPage(
    page,
    `
    const found = [];
    for (const one of document.querySelectorAll('body *')) {
      const text = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
      if (!text || !isShown(one) || one.closest('[aria-hidden="true"], svg, .sr-only') !== null) continue;
      const style = getComputedStyle(one);
      const box = one.getBoundingClientRect();
      // Texts for screen readers are one pixel wide.
      if (box.width <= 1 || box.height <= 1) continue;
      const cutsWide = ['hidden', 'clip'].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
      if (cutsWide && style.textOverflow !== 'ellipsis') found.push('cut at the side: ' + nameOf(one));
      const clamps = style.webkitLineClamp !== 'none';
      const cutsHigh = ['hidden', 'clip'].includes(style.overflowY) && one.scrollHeight > one.clientHeight + 2;
      if (cutsHigh && !clamps && style.textOverflow !== 'ellipsis') found.push('cut below: ' + nameOf(one));
    }
    return found;
  `,
  );

/** Returns the controls in sight of which the middle lies under something else. */
export const coveredControls = (page: Page): Promise<string[]> =>
  inPage(
    page,
    `
    const found = [];
    for (const one of page.querySelectorAll('${CONTROLS}')) {
      if (!isShown(one) || !isEnabled(one)) continue;
      // A link that is broken over lines has a box in each of them.
      const box = one.getClientRects()[0];
      if (box === undefined || box.width <= 1 || box.height <= 1) continue;
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      // The browser rounds the middle of an element at the very edge to a point outside of the window.
      if (x < 0 || y < 0 || x >= innerWidth - 1 || y >= innerHeight - 1) continue;
      // An element that its scrolled container hides is covered by nothing.
      let clipped = false;
      for (let part = one.parentElement; part !== null; part = part.parentElement) {
        if (getComputedStyle(part).overflow === 'visible') continue;
        const edge = part.getBoundingClientRect();
        if (x < edge.left || x >= edge.right || y < edge.top || y >= edge.bottom) clipped = true;
      }
      if (clipped) continue;
      const top = document.elementFromPoint(x, y);
      const label = one.closest('label') ?? (one.id === '' ? null : document.querySelector('label[for="' + CSS.escape(one.id) + '"]'));
      const own = top !== null && (one.contains(top) || top.contains(one) || (label?.contains(top) ?? false));
      if (!own) found.push(nameOf(one) + ' lies under ' + (top === null ? 'nothing' : nameOf(top)));
    }
    return found;
  `,
  );

interface Stop {
  /** Problems with the place of the focus; empty when there are none. */
  defects: string[];
  /** Where the focus is: at a new stop, outside of the page, or at a stop that it was at before. */
  at: 'new' | 'outside' | 'known';
}

/** Looks at the element with the focus and marks it as reached. */
const lookAtStop = (page: Page): Promise<Stop> =>
  page.evaluate(`(() => { ${SHARED}
    let one = document.activeElement;
    if (one === null || one === document.body || one === document.documentElement) return { defects: [], at: 'outside' };
    while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    if (one.hasAttribute('data-reached')) return { defects: [], at: 'known' };
    one.setAttribute('data-reached', '');
    const defects = [];
    const box = one.getBoundingClientRect();
    // A field that consists of several parts has its ring around all of them.
    let ring = false;
    for (let part = one, depth = 0; part !== null && depth < ${RING_DEPTH}; part = part.parentElement, depth += 1) {
      const style = getComputedStyle(part);
      if (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1) ring = true;
    }
    // A grid shows the focus at its active row.
    const active = document.getElementById(one.getAttribute('aria-activedescendant') ?? '');
    if (active !== null && getComputedStyle(active).outlineStyle !== 'none') ring = true;
    if (!ring) defects.push('the focus is not seen at ' + nameOf(one));
    if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth)
      defects.push('the focus is out of sight at ' + nameOf(one));
    return { defects, at: 'new' };
  })()`);

/**
 * Walks the page by Tab from where the focus is, over its end to its beginning, until the focus is where it was before.
 * @returns the controls that were not reached, and the places in which the focus was not seen
 */
export async function tabWalk(page: Page): Promise<string[]> {
  const defects: string[] = [];
  for (let stops = 0; stops < STOPS_MAX; stops += 1) {
    await page.keyboard.press('Tab');
    const stop = await lookAtStop(page);
    defects.push(...stop.defects);
    if (stop.at === 'known') break;
  }
  const missed = await inPage(
    page,
    `
    const missed = [];
    for (const one of page.querySelectorAll('${CONTROLS}')) {
      if (!isShown(one) || !isEnabled(one) || one.hasAttribute('data-reached')) continue;
      const composite = one.closest('${COMPOSITES}');
      if (composite !== null && (composite.hasAttribute('data-reached') || composite.querySelector('[data-reached]') !== null)) continue;
      // The Tab key reaches only the chosen one of the radio buttons that share a name.
      if (one.type === 'radio' && document.querySelector('input[name="' + CSS.escape(one.name) + '"][data-reached]') !== null) continue;
      missed.push('Tab does not reach ' + nameOf(one));
    }
    return missed;
  `,
  );
  return [...defects, ...missed];
}
