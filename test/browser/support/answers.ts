// Answers of the API that were recorded once and are given to the portal in place of a service, so that its pages show
// the same ids, times and numbers in every run. Requests are known by method, path, query and body. The stream of live
// updates gets no answer at all, which is what a page sees before its first event.
import type { BrowserContext, Request, Route } from 'playwright-core';
import type { Answers } from './recording.ts';

const isOfApi = (url: URL): boolean => !url.pathname.startsWith('/portal/');

/** Returns the request as the recording names it. */
function nameOf(request: Request): string {
  const { pathname, searchParams } = new URL(request.url());
  searchParams.sort();
  const query = searchParams.size === 0 ? '' : `?${searchParams}`;
  const body = request.postData();
  return `${request.method()} ${pathname}${query}${body === null ? '' : ` ${body}`}`;
}

const isStream = (request: Request): boolean => new URL(request.url()).pathname === '/v1/live';
const isDocument = (request: Request): boolean => request.resourceType() === 'document';

/** Answers every request of the pages of a context, and calls `onMissing` for those that were not recorded. */
export async function replayAnswers(
  context: BrowserContext,
  answers: Answers,
  onMissing: (name: string) => void,
): Promise<void> {
  await context.route(isOfApi, async (route: Route, request) => {
    if (isDocument(request)) return route.continue();
    if (isStream(request)) return;
    const name = nameOf(request);
    const answer = answers[name];
    if (answer !== undefined)
      return route.fulfill({ status: answer.status, contentType: answer.content_type, body: answer.body });
    onMissing(name);
    return route.abort();
  });
}

/** Passes the requests of the pages of a context on to the service, and keeps the first answer to each. */
export async function recordAnswers(context: BrowserContext, answers: Answers): Promise<void> {
  await context.route(isOfApi, async (route, request) => {
    if (isDocument(request)) return route.continue();
    if (isStream(request)) return;
    const answer = await route.fetch();
    const body = await answer.text();
    answers[nameOf(request)] ??= {
      status: answer.status(),
      content_type: answer.headers()['content-type'] ?? '',
      body,
    };
    return route.fulfill({ response: answer, body });
  });
}
