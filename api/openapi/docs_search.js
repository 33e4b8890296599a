// Runs in the browser, inline in the reference page: search over all operations, and the current operation in the navigation.
// Without it the page shows everything except the search field. It loads nothing and sends nothing.
(() => {
  const field = document.querySelector('#find');
  const count = document.querySelector('#found');
  const groups = [...document.querySelectorAll('nav details')];
  const links = new Map(
    [...document.querySelectorAll('nav .operations a')].map((link) => [link.getAttribute('href').slice(1), link]),
  );
  const isOpen = new Map(groups.map((group) => [group, group.open]));
  // Texts of the links and of what they lead to, made when the search is first used.
  let entries = null;

  function index() {
    return [...document.querySelectorAll('nav details a')].map((link) => {
      const id = link.getAttribute('href');
      const article = id.startsWith('#') ? document.getElementById(id.slice(1))?.closest('article') : null;
      return { link, text: `${link.textContent} ${article?.textContent ?? ''}`.toLowerCase() };
    });
  }

  function search() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    entries ??= index();
    let found = 0;
    for (const { link, text } of entries) {
      link.hidden = !words.every((word) => text.includes(word));
      if (!link.hidden) found += 1;
    }
    for (const group of groups) {
      group.hidden = words.length > 0 && group.querySelector('a:not([hidden])') === null;
      group.open = words.length > 0 ? !group.hidden : isOpen.get(group);
    }
    count.textContent = words.length === 0 ? '' : `${found} ${found === 1 ? 'result' : 'results'}`;
  }

  function show(id) {
    const link = links.get(id);
    if (link === undefined) return;
    for (const other of links.values()) other.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    if (field.value !== '') return;
    const group = link.closest('details');
    group.open = true;
    isOpen.set(group, true);
    link.scrollIntoView({ block: 'nearest' });
  }

  field.closest('form').hidden = false;
  field.addEventListener('input', search);
  field.closest('form').addEventListener('submit', (event) => {
    event.preventDefault();
    document.querySelector('nav details:not([hidden]) a:not([hidden])')?.click();
  });
  document.addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if ((event.key === '/' && !typing) || (event.key === 'k' && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      field.focus();
      field.select();
    }
    if (event.key === 'Escape' && event.target === field) {
      field.value = '';
      search();
    }
  });
  const seen = new IntersectionObserver(
    (articles) => {
      for (const { isIntersecting, target } of articles) if (isIntersecting) show(target.querySelector('h3').id);
    },
    { rootMargin: '-10% 0px -80% 0px' },
  );
  for (const article of document.querySelectorAll('article')) seen.observe(article);
})();
