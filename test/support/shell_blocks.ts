// Shell blocks of Markdown files, for the test that runs the documentation.

/** A fenced block of shell commands. */
export interface ShellBlock {
  text: string;
  /**
   * The reason why the block is not run, from a comment `<!-- not run: … -->` above it; null for a
   * block that is run.
   */
  notRun: string | null;
}

const BLOCK = /(?:<!-- not run: ([^\n]*?) -->\n\n)?```sh\n([\s\S]*?)```/g;

/** Returns the ```sh blocks of a Markdown text in their order. */
export function shellBlocks(markdown: string): ShellBlock[] {
  return [...markdown.matchAll(BLOCK)].map(([, notRun, text = '']) => ({ text, notRun: notRun ?? null }));
}
