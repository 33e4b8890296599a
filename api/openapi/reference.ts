// The API reference as it is served: the OpenAPI document as JSON and as an HTML page. The reference also describes the
// routes that serve it, so those routes are declared first and describe() fills it in before the process listens.
import { openApiDocument, type RouteDoc } from './document.ts';
import { docsPage } from './docs_page.ts';

export class ApiReference {
  #json = '';
  #html = '';

  /** The OpenAPI document as JSON text. */
  get json(): string {
    return this.#json;
  }

  /** The page made from the document. */
  get html(): string {
    return this.#html;
  }

  /**
   * Describes every route of the API.
   * @param nav links to the pages of the documentation, as HTML
   */
  describe(routes: readonly RouteDoc[], nav: string): void {
    const document = openApiDocument(routes);
    this.#json = JSON.stringify(document);
    this.#html = docsPage(document, nav);
  }
}
