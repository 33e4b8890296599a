// Eight pages look as their committed pictures do, in both themes. The pages are those of the bundled portal; the answers
// of the API are recorded ones (`support/pictures.ts`). After a change that is meant, `npm run portal:pictures` takes the
// pictures again. A test that fails names the folder with the picture it took and with the difference in red.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Browser } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { launchChromium } from './support/chromium.ts';
import { differenceOf, drawerOf, takePicture, THEMES } from './support/pictures.ts';
import { readRecording } from './support/recording.ts';

const recording = readRecording();
let browser: Browser;
let isSameDrawer = false;

beforeAll(async () => {
  browser = await launchChromium(inject('chromium'));
  isSameDrawer = isDeepStrictEqual(await drawerOf(browser), recording.drawn_by);
});

afterAll(async () => {
  await browser.close();
});

describe.each(Object.keys(recording.pages))('the page "%s"', (name) => {
  it.for(THEMES)('looks as its picture does in the %s theme', async (theme, { skip }) => {
    skip(
      !isSameDrawer,
      `the pictures are those of Chromium ${recording.drawn_by.chromium} and other fonts of the system`,
    );
    const actual = await takePicture(browser, inject('portal').url, name, theme, recording);
    const difference = differenceOf(name, theme, actual);
    if (difference === null) return;
    const folder = mkdtempSync(path.join(tmpdir(), `millrace-picture-${name}-${theme}-`));
    writeFileSync(path.join(folder, 'actual.png'), PNG.sync.write(actual));
    writeFileSync(path.join(folder, 'difference.png'), PNG.sync.write(difference.picture));
    throw new Error(
      `${difference.pixels} pixels differ from the picture; see ${folder}. If that is meant: npm run portal:pictures`,
    );
  });
});
