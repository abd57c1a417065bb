// What a book of paper can't: themes, a place in the contents that follows, code to copy, print that is whole.
{
  const page = document.documentElement, main = document.getElementById('main');
  const contents = document.getElementById('site-contents');

  const said = document.body.appendChild(document.createElement('p'));
  said.className = 'tbt-unseen';
  said.setAttribute('role', 'status');

  // Theme: as the system has it, the other one (so that the first click is seen), the system's own by name, and round again.
  const night = matchMedia('(prefers-color-scheme: dark)').matches;
  const THEMES = night ? ['', 'light', 'dark'] : ['', 'dark', 'light'], NAMES = { '': 'as your system', light: 'light', dark: 'dark' };
  const button = document.querySelector('.top .theme');
  const chosen = () => page.dataset.theme ?? '';
  function name() {
    button.setAttribute('aria-label', `Theme: ${NAMES[chosen()]}`);
    button.title = button.getAttribute('aria-label');
    button.dataset.theme = chosen();
  }
  button.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    if (next) page.dataset.theme = next; else delete page.dataset.theme;
    try { if (next) localStorage.setItem('theme', next); else localStorage.removeItem('theme'); } catch { /* not kept */ }
    name();
    said.textContent = `Theme: ${NAMES[next]}`;
  });
  name();

  // Where one is: in the list, in the bar, and as a line that grows.
  const links = [...contents.querySelectorAll('.sections a')];
  const heads = links.map(link => document.getElementById(link.hash.slice(1)));
  const where = document.querySelector('.top .where');
  let here = -2;
  function place() {
    const far = page.scrollHeight - innerHeight;
    page.style.setProperty('--read', far > 0 ? Math.min(1, scrollY / far) : 0);
    const end = far > 0 && scrollY > far - 2; // a last section may be too short to reach the top
    const at = heads.findLastIndex(head => head.getBoundingClientRect().top < (end ? innerHeight : 130));
    if (at === here) return;
    links[here]?.removeAttribute('aria-current');
    here = at;
    links[at]?.setAttribute('aria-current', 'location');
    where.textContent = links[at]?.textContent ?? '';
    follow(links[at] ?? contents.querySelector('[aria-current="page"]'));
  }
  // The list scrolls by itself and never the page.
  function follow(link) {
    if (!link) return;
    const box = contents.getBoundingClientRect(), row = link.getBoundingClientRect();
    if (row.top < box.top + 60 || row.bottom > box.bottom - 60) contents.scrollTop += row.top - box.top - box.height / 3;
  }
  let asked = false;
  function soon() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; place(); });
  }
  addEventListener('scroll', soon, { passive: true });
  addEventListener('resize', soon);
  place();
  contents.addEventListener('click', event => { if (event.target.closest('a') && contents.matches(':popover-open')) contents.hidePopover(); });
  contents.addEventListener('toggle', () => follow(contents.querySelector('[aria-current]:not([aria-current="page"]), [aria-current]')));

  // What scrolls by itself can be reached by keyboard, and what does not is no stop on the way.
  const SCROLLS = '.wide, .drawn, .math.block, .tbt-presets', STOPS = 'a[href], button:enabled, input:enabled';
  function stops() {
    for (const one of main.querySelectorAll(SCROLLS)) {
      if (one.scrollWidth > one.clientWidth && !one.querySelector(STOPS)) one.tabIndex = 0;
      else one.removeAttribute('tabindex');
    }
  }
  addEventListener('resize', stops);
  addEventListener('load', stops);
  document.fonts.ready.then(stops);

  // Code to copy; where the clipboard is not given to a page (plain http), the old way.
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.body.appendChild(document.createElement('textarea'));
    field.value = text;
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    if (!done) throw new Error('not copied');
  }
  for (const listing of main.querySelectorAll('.listing')) {
    const one = listing.appendChild(document.createElement('button'));
    Object.assign(one, { type: 'button', className: 'copy', textContent: 'Copy' });
    one.setAttribute('aria-label', 'Copy this code');
    one.addEventListener('click', () => copy(listing.querySelector('pre').textContent)
      .then(() => 'Copied', () => 'Not copied: select it by hand')
      .then(word => {
        one.textContent = said.textContent = word;
        setTimeout(() => { one.textContent = 'Copy'; }, 2000);
      }));
  }

  // Paper can't be clicked: what is folded opens for print, except the tables behind pictures.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...main.querySelectorAll('details:not([open]):not(.tbt-data):not(.setup)')];
    for (const one of folded) one.open = true;
    for (const image of main.querySelectorAll('img[loading]')) image.loading = 'eager';
  });
  addEventListener('afterprint', () => { for (const one of folded) one.open = false; });
}
