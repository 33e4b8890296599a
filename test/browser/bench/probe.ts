// The part of the benchmark that runs inside a page: it acts, waits for a state of the document, and
// reads the clock after the paint of the first frame in which the state holds. It is one function
// without imports, because the browser gets its text.

/** A state of the document; every given part of it must hold. */
export interface Wanted {
  /** Selectors of which each has an element. */
  present?: readonly string[];
  /** Selectors of which none has an element. */
  absent?: readonly string[];
  /** An element whose text contains a text. */
  text?: readonly [selector: string, text: string];
  /** An attribute that has another value than this one. */
  changed?: readonly [selector: string, attribute: string, before: string | null];
  /** The title of the page is another one than this. */
  titleNot?: string;
  /** A key that must be answered by a change of an attribute, once all else holds. */
  answers?: readonly [key: string, selector: string, attribute: string];
}

export type Action =
  | { key: string }
  /** The pointer comes to the element, and clicks it after `rest` milliseconds; without `rest` it is a click alone. */
  | { click: string; rest?: number }
  /** Appends text to a field. */
  | { type: string; into: string };

export interface Seen {
  /** Milliseconds since the page began to load, after the paint. */
  at: number;
  /** From the action, or from the call, to `at`. */
  ms: number;
  /** Milliseconds that the handlers of the action and what they rendered took. */
  work_ms: number;
  /** Frames that began after the action up to the one in which the state holds. */
  frames: number;
}

export type Motion = 'scroll' | 'zoom' | 'pan';

export interface Probe {
  until(wanted: Wanted): Promise<Seen>;
  act(action: Action, wanted: Wanted): Promise<Seen>;
  /** Moves a grid once a frame, and returns the length of each frame in milliseconds. */
  move(selector: string, motion: Motion, frames: number): Promise<number[]>;
  /** Longest task since a time of the page; 0 if none took 50 ms. */
  longestTask(since: number): Promise<number>;
  firstPaint(): number;
  /** State that the page is to reach while it loads. */
  loaded: Promise<Seen> | null;
}

declare global {
  interface Window {
    portalProbe: Probe;
  }
}

/** Makes `portalProbe` in the page. */
export function installProbe(): void {
  const WAIT_MS_MAX = 60_000;
  const REPORTED_AFTER_MS = 120;
  const tasks: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => {
    tasks.push(...list.getEntries());
  });
  observer.observe({ type: 'longtask', buffered: true });

  const afterTask = (): Promise<number> =>
    new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        resolve(performance.now());
      };
      port2.postMessage(null);
    });
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const attributeOf = (selector: string, name: string): string | null =>
    document.querySelector(selector)?.getAttribute(name) ?? null;

  const holds = ({ present = [], absent = [], text, changed, titleNot }: Wanted): boolean =>
    present.every((selector) => document.querySelector(selector) !== null) &&
    absent.every((selector) => document.querySelector(selector) === null) &&
    (titleNot === undefined || document.title !== titleNot) &&
    (changed === undefined || attributeOf(changed[0], changed[1]) !== changed[2]) &&
    (text === undefined || (document.querySelector(text[0])?.textContent ?? '').includes(text[1]));

  const press = (key: string): void => {
    const target = document.activeElement ?? document.body;
    const shiftKey = key.length === 1 && key !== key.toLowerCase();
    const code = /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : key;
    target.dispatchEvent(new KeyboardEvent('keydown', { key, code, shiftKey, bubbles: true, cancelable: true }));
    target.dispatchEvent(new KeyboardEvent('keyup', { key, code, shiftKey, bubbles: true, cancelable: true }));
  };

  const type = (selector: string, text: string): void => {
    const field = document.querySelector(selector);
    if (!(field instanceof HTMLInputElement)) throw new Error(`no field ${selector}`);
    field.focus();
    const property = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
    property?.set?.call(field, field.value + text);
    field.dispatchEvent(new InputEvent('input', { data: text, inputType: 'insertText', bubbles: true }));
  };

  const clicked = (selector: string): HTMLElement => {
    const element = document.querySelector(selector);
    if (!(element instanceof HTMLElement)) throw new Error(`nothing to click: ${selector}`);
    return element;
  };

  const arrive = async (action: Action): Promise<void> => {
    if (!('click' in action) || action.rest === undefined) return;
    clicked(action.click).dispatchEvent(new PointerEvent('pointerover', { bubbles: true, pointerType: 'mouse' }));
    await pause(action.rest);
  };

  const perform = (action: Action): void => {
    if ('key' in action) press(action.key);
    else if ('type' in action) type(action.into, action.type);
    else clicked(action.click).click();
  };

  const until = (wanted: Wanted, began = performance.now(), work_ms = 0): Promise<Seen> =>
    new Promise((resolve, reject) => {
      let frames = 0;
      let before: string | null | undefined;
      const look = (): void => {
        frames += 1;
        if (performance.now() - began > WAIT_MS_MAX) {
          reject(new Error(`the page did not reach ${JSON.stringify(wanted)} within ${WAIT_MS_MAX} ms`));
          return;
        }
        void isReached().then(async (reached) => {
          if (!reached) {
            requestAnimationFrame(look);
            return;
          }
          const at = await afterTask();
          resolve({ at, ms: at - began, work_ms, frames });
        });
      };
      const isReached = async (): Promise<boolean> => {
        if (!holds(wanted)) return false;
        if (wanted.answers === undefined) return true;
        const [key, selector, attribute] = wanted.answers;
        const now = attributeOf(selector, attribute);
        before ??= now;
        if (now !== before) return true;
        press(key);
        // React renders the answer in a microtask, before the paint of this frame.
        for (let turn = 0; turn < 3; turn += 1) await Promise.resolve();
        return attributeOf(selector, attribute) !== before;
      };
      requestAnimationFrame(look);
    });

  const motions: Record<Motion, (grid: Element, frame: number) => void> = {
    scroll: (grid) => {
      grid.scrollTop += 240;
    },
    zoom: (grid, frame) => {
      wheel(grid, { ctrlKey: true, deltaY: frame % 60 < 30 ? -60 : 60 });
    },
    pan: (grid, frame) => {
      wheel(grid, { shiftKey: true, deltaY: frame % 60 < 30 ? 40 : -40 });
    },
  };
  const wheel = (grid: Element, how: WheelEventInit): void => {
    const { right, top, height } = grid.getBoundingClientRect();
    const place = { clientX: right - 120, clientY: top + height / 2 };
    grid.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, ...place, ...how }));
  };

  window.portalProbe = {
    until: (wanted) => until(wanted),
    async act(action, wanted) {
      // The action must not always come at the beginning of a frame.
      await pause(Math.random() * 16);
      await arrive(action);
      const began = performance.now();
      perform(action);
      const seen = until(wanted, began);
      const work_ms = (await afterTask()) - began;
      return { ...(await seen), work_ms };
    },
    move: (selector, motion, frames) =>
      new Promise((resolve) => {
        const grid = document.querySelector(selector);
        const lengths: number[] = [];
        let last = 0;
        const step = (now: number): void => {
          if (last > 0) lengths.push(now - last);
          last = now;
          if (grid === null || lengths.length >= frames) resolve(lengths);
          else {
            motions[motion](grid, lengths.length);
            requestAnimationFrame(step);
          }
        };
        requestAnimationFrame(step);
      }),
    async longestTask(since) {
      await pause(REPORTED_AFTER_MS);
      tasks.push(...observer.takeRecords());
      return tasks
        .filter(({ startTime, duration }) => startTime + duration > since)
        .reduce((most, { duration }) => Math.max(most, duration), 0);
    },
    firstPaint: () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
    loaded: null,
  };
}
