// Entry of the portal's pages: applies the preferences, starts the first requests and renders the
// frame into #root.
import './styles/base.css';
import './styles/tokens.css';
import './styles/fonts.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { prefetchSession } from './client/session.ts';
import { App } from './shell/app.tsx';
import { beginFirstPage } from './shell/begin_page.ts';
import { loadAhead } from './shell/load_ahead.ts';
import { listenForKeys } from './shell/keys.ts';
import { applyPreferences, followOtherTabs } from './shell/preferences.ts';

applyPreferences();
followOtherTabs();
listenForKeys();
loadAhead();
// The login page needs no session, and the operator's pages have another one.
if (location.pathname !== '/login' && !location.pathname.startsWith('/operator')) prefetchSession();
beginFirstPage();

const root = document.getElementById('root') ?? document.body.appendChild(document.createElement('div'));
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
