// `npm run portal:pictures [-- --record]`: takes the pictures that test/browser/pictures.test.ts compares with, from the
// recorded answers of the API. With --record it first records the answers of a service that it fills with the data of
// the demonstration; that is needed when a page asks for something else, or an answer has another shape.
import { parseArgs } from 'node:util';
import { findChromium } from '../support/chromium/install.ts';
import { stopServices } from '../support/service_process.ts';
import { recordAnswers } from './support/answers.ts';
import { launchChromium } from './support/chromium.ts';
import { makeJudged } from './support/judged.ts';
import { drawerOf, openSettled, pictureContext, takePicture, THEMES, storePicture } from './support/pictures.ts';
import { type Answers, readRecording, type Recording, writeRecording } from './support/recording.ts';
import { type PortalService, sendDemo, startPortalService } from './support/portal_service.ts';
import { startScriptedModel } from './support/scripted_model.ts';

type Chromium = Awaited<ReturnType<typeof launchChromium>>;

async function traceOf(portal: PortalService, agent_id: string): Promise<string> {
  const answer = await fetch(`${portal.url}/v1/traces?limit=1&agent_id=${agent_id}`, {
    headers: { authorization: `Bearer ${portal.api_key}`, 'x-org-id': portal.org_id },
  });
  const { data } = (await answer.json()) as { data: { trace_id: string }[] };
  const [trace] = data;
  if (trace === undefined) throw new Error(`no trace of ${agent_id}`);
  return trace.trace_id;
}

/** Fills a service and returns the addresses of the pages. */
async function fill(portal: PortalService): Promise<Recording['pages']> {
  await sendDemo(portal);
  const { runs } = await makeJudged(portal);
  const org = `/o/${portal.org_id}`;
  return {
    home: org,
    traces: `${org}/traces?t=7d&tags=demo`,
    trace: `${org}/traces/${await traceOf(portal, 'checkout-agent')}`,
    conversation: `${org}/traces/${await traceOf(portal, 'kitchenware-support')}?view=conversation`,
    search: `${org}/search?q=refund`,
    costs: `${org}/costs`,
    evals_compared: `${org}/evals/compare/${runs[0]}/${runs[1]}?item=1`,
    policy: `${org}/settings/policy`,
  };
}

/** Opens every page on a filled service and returns what the pages asked for. */
async function record(browser: Chromium, portal: PortalService): Promise<Recording> {
  const pages = await fill(portal);
  const now = new Date().toISOString();
  const answers: Answers = {};
  const context = await pictureContext(browser, portal.url, now, 'light');
  await context.addCookies([{ ...portal.cookie, url: portal.url, httpOnly: true, sameSite: 'Strict' }]);
  await recordAnswers(context, answers);
  for (const at of Object.values(pages)) await openSettled(context, at);
  // A page that is shown may still wait for an answer, which nobody needs any more.
  await context.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
  return { drawn_by: await drawerOf(browser), now, pages, answers };
}

const { values } = parseArgs({ options: { record: { type: 'boolean', default: false } } });
const model = await startScriptedModel();
try {
  const browser = await launchChromium(await findChromium(console.log));
  const portal = await startPortalService(model.url);
  const recording = values.record
    ? await record(browser, portal)
    : { ...readRecording(), drawn_by: await drawerOf(browser) };
  writeRecording(recording);
  for (const name of Object.keys(recording.pages))
    for (const theme of THEMES)
      storePicture(name, theme, await takePicture(browser, portal.url, name, theme, recording));
  console.log(
    `${Object.keys(recording.pages).length * THEMES.length} pictures of Chromium ${recording.drawn_by.chromium}`,
  );
  await browser.close();
} finally {
  await stopServices();
  await model.close();
}
