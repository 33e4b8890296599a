// Which fields of an org's own records a change touched; see api/http/changes.ts.
export { fromTo } from '../../http/changes.ts';
