// The text that a step belongs to, in one form or in several side by side; the line at work is lit in each of them.
// spec.code = [{ label, lines, of }]: `of` has for each line the line of the source it comes from, or 0.

const NEAR = 'data-near';

function codePanel(code, choose) {
  const rows = [];  // [node, line of the source]
  const listing = ({ label, lines, of }, which) => make('section', { class: 'tbt-listing' }, make('h4', {}, label),
    make('ol', { tabindex: 0, 'aria-label': label, ...KEYS }, ...lines.map((line, i) => {
      const words = make('code', {}, line || ' ');
      const row = make('li', { 'data-line': of[i] }, make('span', { class: 'tbt-number', 'aria-hidden': 'true' }, which ? i + 1 : of[i]), words);
      rows.push([row, of[i]]);
      return row;
    })));
  const lists = code.map(listing);
  const node = make('div', { class: 'tbt-code', 'data-texts': code.length, hidden: !code.length }, ...lists);
  const lineOf = event => +(event.target.closest('[data-line]')?.dataset.line ?? 0);
  const near = line => { for (const [row, of] of rows) row.toggleAttribute(NEAR, Boolean(line) && of === line); };
  node.addEventListener('pointerover', event => near(lineOf(event)));
  node.addEventListener('pointerleave', () => near(0));
  node.addEventListener('click', event => { if (lineOf(event)) choose(lineOf(event)); });

  // Only the listing scrolls, never the page.
  function show(line) {
    for (const [row, of] of rows) {
      if (of === line && line) row.setAttribute('aria-current', 'step'); else row.removeAttribute('aria-current');
    }
    for (const list of node.querySelectorAll('ol')) {
      const lit = list.querySelector('[aria-current]');
      if (!lit) continue;
      const top = lit.offsetTop;
      if (top < list.scrollTop || top + lit.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
    }
  }
  return { node, show };
}
