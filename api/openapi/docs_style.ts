// The style sheet of the documentation pages, which follows the reader's light or dark setting.

export const DOCS_CSS = `
:root { color-scheme: light dark; --bg: #fff; --side: #f6f7f9; --text: #1c2430; --dim: #5b6675; --line: #e2e6ec; --code: #f2f4f7; --accent: #2456c7;
  --get: #1f7a4d; --post: #2456c7; --put: #9a6700; --patch: #8a4bb0; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161c; --side: #181d25; --text: #e4e8ee; --dim: #98a3b3; --line: #2a313c; --code: #1d232d; --accent: #7aa2ff;
  --get: #5fc48f; --post: #7aa2ff; --put: #d9a441; --patch: #c08be0; --delete: #ff8a80; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 16px; }
body { margin: 0; display: grid; grid-template-columns: 320px minmax(0, 1fr); background: var(--bg); color: var(--text); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 24px 16px 40px; background: var(--side); border-right: 1px solid var(--line); }
nav .brand { margin: 0; font-weight: 650; font-size: 17px; }
nav .version { margin: 2px 0 20px; color: var(--dim); font-size: 13px; }
nav .version a { display: inline; padding: 0; color: var(--accent); }
nav h2 { margin: 18px 8px 4px; font-size: 12px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); }
nav a { display: flex; gap: 8px; align-items: baseline; padding: 3px 8px; border-radius: 6px; color: var(--text); text-decoration: none; font-size: 13px; }
nav a:hover { background: var(--line); }
nav a span { overflow-wrap: anywhere; }
nav a[aria-current] { background: var(--line); font-weight: 600; }
nav details { margin: 0; } nav summary { padding: 6px 8px 4px; font-size: 12px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); font-weight: 650; }
main { max-width: 980px; padding: 32px 40px 120px; } .reference main { max-width: 1240px; }
.reference main > p { max-width: 760px; } [hidden] { display: none !important; }
nav form { margin: 0 0 12px; } #find { width: 100%; padding: 7px 10px; font: inherit; font-size: 14px; color: inherit; background: var(--bg); border: 1px solid var(--line); border-radius: 8px; }
#find:focus { outline: 2px solid var(--accent); outline-offset: -1px; } #found { display: block; padding: 4px 8px 0; font-size: 12px; color: var(--dim); }
.operations a { justify-content: space-between; } nav .operations em { width: auto; font-size: 10px; }
a.contents { display: none; }
main img { display: block; max-width: 100%; height: auto; margin: 12px 0; border: 1px solid var(--line); border-radius: 8px; }
h1 { margin: 0 0 12px; font-size: 28px; line-height: 1.2; }
h2.tag { margin: 48px 0 8px; padding-bottom: 6px; font-size: 21px; border-bottom: 1px solid var(--line); }
article { padding: 28px 0 20px; border-bottom: 1px solid var(--line); }
h3 { margin: 0 0 4px; font-size: 18px; line-height: 1.3; }
.route { display: flex; gap: 10px; align-items: baseline; margin: 0 0 10px; } .route em { width: auto; } .route code { background: none; padding: 0; overflow-wrap: anywhere; }
.example h4 { margin-top: 8px; } .example pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.fields { margin: 4px 0; padding: 0; list-style: none; } .fields li { margin: 0; padding: 7px 0; border-top: 1px solid var(--line); font-size: 13.5px; } .fields p { margin: 2px 0 0; }
.fields i { font-style: normal; color: var(--dim); overflow-wrap: anywhere; } .fields b { font-size: 12px; font-weight: 600; color: var(--delete); } .fields .fields { margin-left: 12px; }
h4 { margin: 18px 0 6px; font-size: 13px; color: var(--dim); font-weight: 600; }
em { flex: none; width: 52px; font: 650 11px/1.6 ui-monospace, monospace; font-style: normal; color: var(--dim); }
em.get { color: var(--get); } em.post { color: var(--post); } em.put { color: var(--put); } em.patch { color: var(--patch); } em.delete { color: var(--delete); }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 13px; }
code { background: var(--code); padding: 1px 5px; border-radius: 4px; }
pre { margin: 6px 0; padding: 12px 14px; overflow-x: auto; background: var(--code); border-radius: 8px; line-height: 1.45; }
pre code { background: none; padding: 0; }
details { margin: 4px 0 10px; } summary { cursor: pointer; color: var(--accent); font-size: 13px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
main ul, main ol { padding-left: 22px; } main li { margin: 4px 0; } main a { color: var(--accent); }
main > h2 { margin: 36px 0 8px; font-size: 20px; } main > h3 { margin: 24px 0 4px; } main > pre { max-width: 100%; }
th { padding: 6px 12px 6px 0; text-align: left; vertical-align: bottom; }
td { padding: 6px 12px 6px 0; border-top: 1px solid var(--line); vertical-align: top; } td code { white-space: nowrap; }
.status { margin: 6px 0; font-size: 13.5px; } .status b { display: inline-block; min-width: 36px; } .good { color: var(--get); } .bad { color: var(--delete); }
@media (min-width: 1240px) { article { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 440px); gap: 40px; } .example { position: sticky; top: 16px; align-self: start; } }
@media (max-width: 860px) { body { display: flex; flex-direction: column-reverse; justify-content: flex-end; } nav { position: static; height: auto; border: 0; } main { padding: 24px 18px 40px; max-width: 100%; }
  td code { white-space: normal; } a.contents { display: block; position: fixed; z-index: 1; right: 12px; bottom: 12px; padding: 8px 14px; background: var(--accent); color: var(--bg); border-radius: 20px; text-decoration: none; font-size: 14px; } }
`;
