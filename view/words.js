// Words, figures, formula with its terms, and the data.

// "2·{bm}·{bn:64}" -> text and terms; in the symbols each term is a button that leads to its control.
const TERM = /\{([a-z0-9_]+)(?::([^{}]*))?\}/g;

function sayTerms(node, text, lead) {
  if (node.dataset.said === text) return;
  node.dataset.said = text;
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TERM)) {
    const [whole, name, words = name] = found, known = { 'data-term': name, class: 'tbt-term' }, end = found.index + whole.length;
    // a bracket stays on its term's line
    const before = text.slice(at, found.index), open = before.match(/[^\s{}]*$/)[0], close = text.slice(end).match(/^[^\s{}]*/)[0];
    const term = lead ? button(words, () => lead(name), known) : make('span', known, words);
    parts.push(before.slice(0, before.length - open.length), open || close ? make('span', { class: 'tbt-glued' }, open, term, close) : term);
    at = end + close.length;
  }
  node.replaceChildren(...parts, text.slice(at));
}

function words(lead) {
  const p = name => make('p', { class: `tbt-${name}`, hidden: true });
  const figures = make('dl', { class: 'tbt-figures' }), formula = make('dl', { class: 'tbt-formula' });
  const keys = make('div', { class: 'tbt-keys' });
  const one = { caption: p('caption'), warning: p('warning'), beside: p('beside'), takeaway: p('takeaway') };
  return {
    figures,
    formula,
    under: [one.caption, keys],
    last: [one.takeaway, one.warning, one.beside],
    show(frame) {
      for (const name of ['caption', 'warning', 'takeaway']) fill(one[name], frame[name]);
      fill(one.beside, frame.beside.join('\n'));
      list(figures, frame.figures, () => make('div', {}, make('dt'), make('dd')), (node, [label, text, role]) => {
        const [name, value] = node.children;
        say(name, label);
        say(value, text);
        put(value, { class: role });
      });
      frame.terms.forEach((term, i) => { const node = figures.children[i]; if (term) node.dataset.term = term; else delete node.dataset.term; });
      list(formula, frame.formula.flat(), i => make(i % 2 ? 'dd' : 'dt'), (node, text) => sayTerms(node, text, node.tagName === 'DT' && lead));
      list(keys, frame.legend, () => make('span', {}, make('i'), make('span')), ({ children: [key, name] }, [role, meaning]) => {
        put(key, { class: role });
        say(name, meaning);
      });
      keys.hidden = !frame.legend.length;
    },
  };
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); return; } catch { /* no permission: the old way */ }
  const area = document.body.appendChild(make('textarea', { style: 'position:fixed;opacity:0' }));
  area.value = text;
  area.select();
  document.execCommand('copy');
  area.remove();
}

const python = value => (value === true ? 'True' : value === false ? 'False' : JSON.stringify(value));

function dataPanel(spec, state, announce) {
  const body = make('table');
  const scroll = make('div', { class: 'tbt-scroll', tabindex: 0, role: 'group', 'aria-label': 'Data of the picture', ...KEYS }, body);
  const copying = (label, text, done) => button(label, async () => { await copy(text()); announce(done, 0); });
  const code = () => {
    const changed = spec.controls.filter(c => state.values[c.name] !== c.default);
    return `show(${[`"${spec.id}"`, ...changed.map(c => `${c.name}=${python(state.values[c.name])}`)].join(', ')})`;
  };
  const row = cells => make('tr', {}, ...cells.map((cell, i) => (i ? make('td', {}, cell) : make('th', { scope: 'row' }, cell))));
  const fillTable = () => {
    const { header, rows } = state.frame.table;
    body.replaceChildren(make('thead', {}, make('tr', {}, ...header.map(cell => make('th', { scope: 'col' }, cell)))), make('tbody', {}, ...rows.map(row)));
  };
  const node = make('details', { class: 'tbt-data' }, make('summary', KEYS, 'Show as data'), scroll,
    copying('Copy data', () => state.frame.table.raw, 'Data copied.'), ' ',
    spec.code ? null : copying('Copy as code', code, 'Code copied.'));
  const show = () => { if (node.open && state.frame) fillTable(); };
  node.addEventListener('toggle', show);
  return { node, show };
}

function lock(spec, uid, commit) {
  const input = make('input', { type: 'number', step: 'any', id: `${uid}-guess`, required: true, ...KEYS });
  const sure = make('button', { type: 'submit', class: 'tbt-commit', ...KEYS }, 'Commit');
  const row = make('div', { class: 'tbt-row' }, input, spec.prediction.unit, sure, make('span', { class: 'tbt-help' }, 'The picture opens with your prediction.'));
  const form = make('form', { class: 'tbt-prediction' }, make('label', { for: input.id }, spec.prediction.question), row);
  // JupyterLab keeps Enter from submitting a form by itself
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter') { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener('submit', event => { event.preventDefault(); commit(input.valueAsNumber); });
  return form;
}

function sayVerdict({ near, guess, truth, unit, within }) {
  const of = unit === '%' ? '%' : ` ${truth === '1' ? unit.replace(/s\b/, '') : unit}`;
  const tail = near ? `Your prediction is within ${within}.` : `Your prediction is ${within === '0%' ? '' : `more than ${within} `}off: find out why below.`;
  return `You said ${guess}; it is ${truth}${of.trimEnd()}. ${tail}`;
}
