// The hands of a person on a page: they click, press keys and type, and count what they did. Texts that
// are typed are not counted; the keys around them are.
import { expect } from 'vitest';
import type { Locator, Page } from 'playwright-core';

export class Hands {
  readonly page: Page;
  #clicks = 0;
  #keys = 0;

  constructor(page: Page) {
    this.page = page;
  }

  /** Clicks once. */
  async click(target: Locator): Promise<void> {
    this.#clicks += 1;
    await target.click();
  }

  /** Presses keys one after the other. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      this.#keys += 1;
      await this.page.keyboard.press(key);
    }
  }

  /** Types a text where the focus is. */
  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text);
  }

  /** Expects that no more was done than this. */
  expectAtMost({ clicks, keys }: { clicks: number; keys: number }): void {
    expect(this.#clicks, 'clicks').toBeLessThanOrEqual(clicks);
    expect(this.#keys, 'keys').toBeLessThanOrEqual(keys);
  }
}

/**
 * Presses the keys of a sequence such as `g t`. Each is sent without waiting for what the page makes of the one before,
 * because the time between two keys of a sequence is bounded.
 */
export async function pressSequence({ keyboard }: Page, ...keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => keyboard.press(key)));
}
