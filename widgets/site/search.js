// Search without a server: the words of all pages come as one script when they are first asked for.
{
  const root = document.documentElement.dataset.root;
  const MOST = 20, AROUND = 70;
  const plain = text => text.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '');
  const safe = text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const starts = word => new RegExp(`(^|[^\\p{L}\\p{N}])${safe(word)}`, 'u');
  let rows = null;

  function loaded() {
    return rows ??= new Promise((done, fail) => {
      const script = document.head.appendChild(document.createElement('script'));
      script.onload = () => done(window.tileByTile.map(([address, chapter, title, words]) => (
        { address, chapter, title, words, head: plain(title), text: plain(words) })));
      script.onerror = () => { rows = null; fail(new Error('search-data.js')); };
      script.src = `${root}assets/search-data.js`;
    });
  }

  // Every word must begin some word of the section; where it stands in the title, it counts most.
  function score(row, patterns) {
    let sum = 0;
    for (const pattern of patterns) {
      const head = pattern.test(row.head), text = pattern.test(row.text);
      if (!head && !text && !pattern.test(plain(row.chapter))) return 0;
      sum += head ? 10 : 0;
      sum += text ? Math.min(4, row.text.split(pattern).length) : 0;
    }
    return sum + 1;
  }
  function found(rows, asked) {
    const words = plain(asked).split(/\s+/).filter(Boolean), patterns = words.map(starts);
    const all = rows.map((row, order) => ({ row, order, score: score(row, patterns) })).filter(one => one.score);
    return { words, hits: all.sort((a, b) => b.score - a.score || a.order - b.order).map(one => one.row) };
  }

  // The words around the first one found; marks are elements, so nothing of a text is ever read as HTML.
  function excerpt(row, words) {
    const at = Math.max(0, row.text.search(starts(words[0]))), from = Math.max(0, at - AROUND);
    const text = (from ? '… ' : '') + row.words.slice(from, at + 2 * AROUND) + (row.words.length > at + 2 * AROUND ? ' …' : '');
    const line = document.createElement('p');
    for (const piece of text.split(new RegExp(`(${words.map(safe).join('|')})`, 'iu'))) {
      const hit = words.includes(plain(piece));
      line.append(hit ? Object.assign(document.createElement('mark'), { textContent: piece }) : piece);
    }
    return line;
  }

  const dialog = document.body.appendChild(document.createElement('dialog'));
  dialog.id = 'site-search';
  dialog.setAttribute('aria-label', 'Search the course');
  dialog.innerHTML = '<div class="asked"><input type="text" role="searchbox" enterkeyhint="search" aria-label="Search the course" placeholder="Search the course"'
    + ' autocomplete="off" spellcheck="false"><button type="button" class="tool">Close</button></div>'
    + '<p class="count" role="status"></p><ol class="found"></ol>';
  const [field, close, count, list] = ['input', 'button', '.count', 'ol'].map(one => dialog.querySelector(one));

  async function answer() {
    const asked = field.value;
    if (!asked.trim()) { list.replaceChildren(); count.textContent = ''; return; }
    try {
      const { words, hits } = found(await loaded(), asked);
      if (asked !== field.value) return;
      count.textContent = hits.length ? `${hits.length} place${hits.length > 1 ? 's' : ''}` : 'Nothing found; try fewer or other words.';
      list.replaceChildren(...hits.slice(0, MOST).map(row => {
        const item = document.createElement('li'), link = item.appendChild(document.createElement('a'));
        link.href = root + row.address;
        link.append(Object.assign(document.createElement('b'), { textContent: row.title }),
          Object.assign(document.createElement('small'), { textContent: row.chapter }), excerpt(row, words));
        return item;
      }));
    } catch {
      count.textContent = 'The search data could not be loaded from this site; reload the page.';
    }
  }
  function open() {
    if (dialog.open) return;
    loaded().catch(() => {});
    dialog.showModal();
    field.select();
  }

  document.querySelector('.top .search').addEventListener('click', open);
  close.addEventListener('click', () => dialog.close());
  field.addEventListener('input', answer);
  list.addEventListener('click', event => { if (event.target.closest('a')) dialog.close(); });
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('keydown', event => {
    const links = [...list.querySelectorAll('a')], at = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' && document.activeElement === field) links[0]?.click();
    if (!step || !links.length) return;
    event.preventDefault();
    (at + step < 0 ? field : links[Math.min(at + step, links.length - 1)]).focus();
  });
  addEventListener('keydown', event => {
    const typing = event.target.closest?.('input:not([type="range"]), textarea, select, [contenteditable]');
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      open();
    }
  });
}
