// Rendered texts are Markdown that users and models wrote. Sixty texts that were made to run something, to load something
// or to stall the page become elements of text, lists, tables and links to http, https and mailto, and nothing else.
import { expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, settled } from './support/browser.ts';

const RUN = "document.title='ran'";
const DEEP = 5000;

const MARKUP = [
  `<script>${RUN}</script>`,
  `<SCRIPT SRC=//example.org/x.js></SCRIPT>`,
  `<img src=x onerror="${RUN}">`,
  `<img src="https://example.org/pixel.png">`,
  `<svg onload="${RUN}"><animate onbegin="${RUN}"/></svg>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<object data="data:text/html,<script>${RUN}</script>"></object>`,
  `<embed src="javascript:${RUN}">`,
  `<link rel="stylesheet" href="https://example.org/x.css">`,
  `<style>@import url(https://example.org/x.css); body{display:none}</style>`,
  `<base href="https://example.org/">`,
  `<meta http-equiv="refresh" content="0;url=https://example.org/">`,
  `<form action="https://example.org/"><input type=submit></form>`,
  `<math><mtext><script>${RUN}</script></mtext></math>`,
  `<details open ontoggle="${RUN}">x</details>`,
  `<video src=x onerror="${RUN}"></video>`,
  `<body onload="${RUN}">`,
  `<a href="javascript:${RUN}">click</a>`,
  `<div style="position:fixed;inset:0;background:red">cover</div>`,
  `<!--><img src=x onerror="${RUN}">-->`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `<?php echo "<script>${RUN}</script>" ?>`,
  `<template><script>${RUN}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `text <b onmouseover="${RUN}">bold</b> text`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `\\<script>${RUN}</script>`,
];
const ADDRESSES = [
  `[a](javascript:${RUN})`,
  `[a](JaVaScRiPt:${RUN})`,
  `[a](java\tscript:${RUN})`,
  `[a](&#106;avascript:${RUN})`,
  `[a](javascript&colon;${RUN})`,
  `[a](%6aavascript:${RUN})`,
  `[a](\u0001javascript:${RUN})`,
  `[a](data:text/html;base64,PHNjcmlwdD4xPC9zY3JpcHQ+)`,
  `[a](vbscript:msgbox)`,
  `[a](file:///etc/passwd)`,
  `[a](blob:https://example.org/1)`,
  `[a](//example.org/)`,
  `[a](https://example.org/ "x\\" onclick=\\"${RUN}")`,
  `[a][1]\n\n[1]: javascript:${RUN}`,
  `<javascript:${RUN}>`,
  `<https://example.org/?x="onclick=${RUN}>`,
  `![a](javascript:${RUN})`,
  `![a](https://example.org/pixel.png)`,
  `![a](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)`,
  `![<script>${RUN}</script>](x)`,
  `[![a](https://example.org/p.png)](javascript:${RUN})`,
  `[<img src=x onerror="${RUN}">](https://example.org/)`,
  `www.example.org/<script>${RUN}</script>`,
];
const SHAPES = [
  `| <script>${RUN}</script> | [a](javascript:${RUN}) |\n|-|-|\n| <img src=x onerror="${RUN}"> | b |`,
  `\`\`\`html\n<script>${RUN}</script>\n\`\`\``,
  `# <img src=x onerror="${RUN}">\n\n- [x] <script>${RUN}</script>`,
  `a[^1]\n\n[^1]: <script>${RUN}</script>`,
  '> '.repeat(DEEP) + 'deep',
  '['.repeat(DEEP) + '](x)',
  '*a_'.repeat(DEEP),
  `\u202E<script>${RUN}</script>\u202C ${'w'.repeat(10_000)}`,
  '- '.repeat(DEEP) + 'deep',
];
const PAYLOADS = [...MARKUP, ...ADDRESSES, ...SHAPES];

it(`${PAYLOADS.length} hostile texts that are rendered run nothing, load nothing and link to nothing but the web`, async () => {
  expect(PAYLOADS).toHaveLength(60);
  const trace_id = 'browser-markdown';
  const { org_id } = inject('portal');
  const prompt = JSON.stringify(PAYLOADS.map((content) => ({ role: 'user', content })));
  const attributes = { span_kind: 'llm', model: 'gpt-4o', prompt, response: PAYLOADS[0] };
  const event = { name: 'markdown', trace_id, span_id: 'call', outcome: 'success', duration_ms: 10, attributes };
  await api(`/orgs/${org_id}/ingest/custom`, { events: [event] });
  await eventually(async () => (await api(`/v1/traces/${trace_id}/outline`)).ok, { what: 'the trace' });

  const page = await openPage({ at: `~/traces/${trace_id}` });
  await settled(page);
  const title = await page.title();
  const panel = page.getByRole('region', { name: 'Span', exact: true });
  await panel.getByRole('heading', { name: `${PAYLOADS.length} messages` }).waitFor();
  await panel.getByRole('button', { name: 'Rendered' }).first().click();
  // The table among the texts is an element of its own once all of them are rendered.
  await panel.getByRole('region', { name: 'Table' }).waitFor();
  await settled(page);

  const { tags, links, handlers } = await panel.evaluate((root) => {
    const all = [...root.querySelectorAll('*')];
    return {
      tags: [...new Set(all.filter((one) => one.closest('svg') === null).map((one) => one.localName))],
      links: all.flatMap((one) => one.getAttribute('href') ?? []),
      handlers: all
        .flatMap((one) => one.getAttributeNames())
        .filter((name) => /^on|^srcdoc$|^src$|^action$/.test(name)),
    };
  });
  const forbidden = ['script', 'img', 'iframe', 'object', 'embed', 'link', 'style', 'base', 'meta', 'form', 'math'];
  expect(tags.filter((tag) => [...forbidden, 'video', 'details', 'template', 'noscript'].includes(tag))).toEqual([]);
  expect(handlers).toEqual([]);
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter((href) => !/^(?:https?:\/\/|mailto:|\/o\/)/.test(href))).toEqual([]);
  // Markup is shown as it was written.
  expect(await panel.getByText(`<iframe src="javascript:${RUN}"></iframe>`).count()).toBeGreaterThan(0);
  expect(await page.title()).toBe(title);
  expectNoFaults(page);
});
