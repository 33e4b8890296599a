// The pages whose pictures are committed, and how a picture is taken, stored and compared. Everything that differs
// between two runs or two machines is fixed: the answers of the API, the clock, the zone, the fonts (the portal's own),
// the window, and the animations.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pixelmatch from 'pixelmatch';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { replayAnswers } from './answers.ts';
import { type Drawer, PICTURES_DIR, type Recording } from './recording.ts';
import { settled, watchRequests } from './settled.ts';

export const THEMES = ['light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** Bound on one action of a page; a slow machine needs far less. */
const ACTION_MS_MAX = 60_000;
const WINDOW = { width: 1120, height: 640 };
/** Distance of two colours (0 to 1) up to which they count as equal, and the number of pixels that may differ more. */
const COLOUR_DISTANCE = 0.05;
const PIXELS_MAX = 20;
/** Pictures in a row that show the same: a page may draw once more after its last answer. */
const SAME_IN_A_ROW = 2;
const PICTURES_MAX = 30;

/** Returns what a browser draws with. */
export async function drawerOf(browser: Browser): Promise<Drawer> {
  const page = await browser.newPage();
  const arrow = await page.evaluate(() => {
    const pen = document.createElement('canvas').getContext('2d');
    if (pen === null) return 0;
    pen.font = '100px no-such-font, sans-serif';
    return pen.measureText('→').width;
  });
  await page.close();
  return { chromium: browser.version(), arrow };
}

/** Returns a browser profile whose pages look the same everywhere. The caller closes it. */
export async function pictureContext(
  browser: Browser,
  url: string,
  now: string,
  theme: Theme,
): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: WINDOW,
    deviceScaleFactor: 1,
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  context.setDefaultTimeout(ACTION_MS_MAX);
  await context.clock.setFixedTime(now);
  return context;
}

/** Opens a page and resolves when it shows its data. */
export async function openSettled(context: BrowserContext, at: string): Promise<Page> {
  const page = await context.newPage();
  watchRequests(page);
  await page.goto(at);
  await settled(page);
  return page;
}

/** Takes the picture of a page from recorded answers. @throws Error that names the requests that were not recorded */
export async function takePicture(
  browser: Browser,
  url: string,
  name: string,
  theme: Theme,
  { now, pages, answers }: Recording,
): Promise<PNG> {
  const context = await pictureContext(browser, url, now, theme);
  const missing = new Set<string>();
  try {
    await replayAnswers(context, answers, (request) => missing.add(request));
    const at = pages[name];
    if (at === undefined) throw new Error(`the recording has no page ${name}`);
    const page = await openSettled(context, at);
    const picture = await stillPicture(page);
    if (missing.size > 0)
      throw new Error(
        `The page ${name} asks for what was not recorded: ${[...missing].join(', ')}. Run npm run portal:pictures -- --record`,
      );
    return picture;
  } finally {
    await context.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
  }
}

/** Returns the picture that a page shows twice in a row. */
async function stillPicture(page: Page): Promise<PNG> {
  let last: Buffer | null = null;
  let same = 1;
  for (let taken = 0; taken < PICTURES_MAX; taken += 1) {
    const next = await page.screenshot({ animations: 'disabled', caret: 'hide', scale: 'css' });
    same = last?.equals(next) === true ? same + 1 : 1;
    if (same === SAME_IN_A_ROW) return PNG.sync.read(next);
    last = next;
  }
  throw new Error(`the page ${page.url()} does not stand still`);
}

/** Texts and flat surfaces are smallest without the filters that suit photographs. */
const SMALL = { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: 0 } as const;

const fileOf = (name: string, theme: Theme): string => path.join(PICTURES_DIR, `${name}_${theme}.png`);

/** Stores a picture as small as PNG makes it, unless the stored one looks the same. */
export function storePicture(name: string, theme: Theme, picture: PNG): void {
  if (existsSync(fileOf(name, theme)) && differenceOf(name, theme, picture) === null) return;
  writeFileSync(fileOf(name, theme), PNG.sync.write(picture, SMALL));
}

export interface Difference {
  pixels: number;
  /** Shows what differs in red. */
  picture: PNG;
}

/** Returns how a picture differs from the committed one; null if it looks the same. */
export function differenceOf(name: string, theme: Theme, actual: PNG): Difference | null {
  const file = fileOf(name, theme);
  if (!existsSync(file)) throw new Error(`There is no picture ${file}. Run npm run portal:pictures`);
  const expected = PNG.sync.read(readFileSync(file));
  const { width, height } = actual;
  if (expected.width !== width || expected.height !== height) return { pixels: width * height, picture: actual };
  const picture = new PNG({ width, height });
  const pixels = pixelmatch(expected.data, actual.data, picture.data, width, height, { threshold: COLOUR_DISTANCE });
  return pixels > PIXELS_MAX ? { pixels, picture } : null;
}
