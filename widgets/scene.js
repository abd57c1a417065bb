// The one view of every simulator. mount(host, adapter) draws what Python declared (adapter.spec) and what it
// answers; render() is its notebook adapter. No build step, no import: a static page loads this file too.
// adapter = { spec, answer, ask(request), listen(callback) -> stop, waiting (what to say meanwhile) }

const SVG = 'http://www.w3.org/2000/svg';
const GAP = '\u202f';
const WAIT_MS = 1000, ANNOUNCE_MS = 400, PLAY_MS = 650;

// JupyterLab's command mode swallows arrow keys on whatever is focused unless it carries this itself.
const KEYS = { 'data-lm-suppress-shortcuts': 'true' };

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

const button = (label, onclick, more = {}) => make('button', { type: 'button', onclick, ...KEYS, ...more }, label);

// What has not changed is not touched: the browser then has nothing to lay out or to paint.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

function fill(node, text) {
  say(node, text);
  if (node.hidden === Boolean(text)) node.hidden = !text;
}

// As many children as there are items, each made once and told its item anew.
function list(node, items, build, tell) {
  while (node.childElementCount > items.length) node.lastChild.remove();
  items.forEach((item, i) => tell(node.children[i] ?? node.appendChild(build(i)), item));
}

// ---- messages: one each way a change, the latest wins

function courier(adapter, view, waiting) {
  let revision = 0, flying = 0, next = null, timer = 0;
  const go = () => {
    flying = ++revision;
    timer = setTimeout(() => waiting(true), WAIT_MS);
    const request = { view, revision, ...next };
    next = null;
    adapter.ask(request);
  };
  return {
    send(request) { next = request; if (!flying) go(); },
    // true when this answer leaves nothing newer on its way
    landed(answer) {
      if (answer.view !== view) return !flying;
      if (answer.revision !== flying) return false;
      clearTimeout(timer);
      waiting(false);
      flying = 0;
      if (next) { go(); return false; }
      return true;
    },
    stop() { clearTimeout(timer); },
  };
}

// Steps arrive as differences: the first whole, then what each changes.
function expand(frames) {
  let before = { marks: new Map() };
  return frames.map(frame => {
    let marks = new Map(before.marks);
    for (const id of frame.gone) marks.delete(id);
    for (const mark of frame.marks) marks.set(mark.id, { ...marks.get(mark.id), ...mark });
    if (frame.order) marks = new Map(frame.order.map(id => [id, marks.get(id)]));
    return (before = { ...before, ...frame, marks });
  });
}

// ---- controls

const decimals = step => (String(step).split('.')[1] || '').length;

function withUnit(control, value) {
  const text = value.toLocaleString('en-US', { minimumFractionDigits: decimals(control.step), maximumFractionDigits: 6 });
  return text + (['', '%', '×'].includes(control.unit) ? '' : GAP) + control.unit;
}

const nearest = (stops, value) =>
  stops.reduce((best, stop, i) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best), 0);

function sliderControl(control, id, changed) {
  const stops = control.stops;
  const range = stops.length ? { min: 0, max: stops.length - 1, step: 1 } : control;
  const input = make('input', { type: 'range', id, min: range.min, max: range.max, step: range.step, ...KEYS });
  const shown = make('span', { class: 'tbt-value', 'aria-hidden': 'true' });
  const name = text => { say(shown, text); put(input, { 'aria-valuetext': text }); };
  const read = () => (stops.length ? stops[+input.value] : +input.value);
  const words = () => (stops.length ? control.texts[+input.value] : withUnit(control, +input.value));
  input.addEventListener('input', () => { name(words()); changed(control.name, read()); });
  return {
    input,
    parts: [make('label', { for: id }, control.label), shown, input],
    show(value) {
      input.value = stops.length ? nearest(stops, value) : value;
      name(!stops.length || stops.includes(value) ? words() : withUnit({ ...control, step: 1 }, value));
    },
  };
}

function numberControl(control, id, changed) {
  const { min, max, step } = control;
  const input = make('input', { type: 'number', id, min, max, step, inputmode: 'decimal', ...KEYS });
  input.addEventListener('input', () => changed(control.name, input.value === '' ? null : input.valueAsNumber));
  const label = make('label', { for: id }, control.label + (control.unit ? ` (${control.unit})` : ''));
  return { input, parts: [label, input], show(value) { if (document.activeElement !== input) input.value = value; } };
}

function selectControl(control, id, changed) {
  const options = control.texts.map((text, i) => make('option', { value: i }, text));
  const input = make('select', { id, ...KEYS }, ...options);
  input.addEventListener('change', () => changed(control.name, control.stops[+input.value]));
  const label = make('label', { for: id }, control.label);
  return { input, parts: [label, input], show(value) { input.value = control.stops.indexOf(value); } };
}

function radioControl(control, id, changed) {
  const inputs = control.stops.map((stop, i) =>
    make('input', { type: 'radio', name: id, id: `${id}-${i}`, ...KEYS, onchange: () => changed(control.name, stop) }));
  const labels = inputs.map((input, i) => make('label', {}, input, control.texts[i]));
  const legend = make('span', { class: 'tbt-legend', id }, control.label);
  const group = make('div', { class: 'tbt-choices', role: 'radiogroup', 'aria-labelledby': id }, ...labels);
  return {
    input: group,
    parts: [legend, group],
    show(value) { inputs.forEach((input, i) => { input.checked = control.stops[i] === value; }); },
    rest(off) { inputs.forEach(input => { input.disabled = off; }); },
  };
}

function toggleControl(control, id, changed) {
  const input = make('input', { type: 'checkbox', id, ...KEYS });
  input.addEventListener('change', () => changed(control.name, input.checked));
  return { input, parts: [make('label', { for: id }, control.label), input], show(value) { input.checked = value; } };
}

function controlFor(control, id, changed) {
  const short = control.stops.length <= 4 && control.texts.join('').length <= 36;
  const kinds = { slider: sliderControl, number: numberControl, toggle: toggleControl, select: short ? radioControl : selectControl };
  const made = kinds[control.kind](control, id, changed);
  const help = control.help ? make('span', { class: 'tbt-help', id: `${id}-help` }, control.help) : null;
  if (help) made.input.setAttribute('aria-describedby', help.id);
  return { ...made, control, node: make('div', { class: 'tbt-control' }, ...made.parts, help) };
}

function controlPanel(spec, uid, changed) {
  const all = spec.controls.map(control => controlFor(control, `${uid}-${control.name}`, changed));
  const nodes = more => all.filter(one => one.control.more === more).map(one => one.node);
  const folded = nodes(true);
  const more = folded.length
    ? make('details', { class: 'tbt-more' }, make('summary', KEYS, 'More settings'), make('div', { class: 'tbt-controls' }, ...folded))
    : null;
  return {
    nodes: [make('div', { class: 'tbt-controls' }, ...nodes(false)), more],
    show(values) { for (const one of all) if (one.control.name in values) one.show(values[one.control.name]); },
    rest(off) { for (const one of all) one.rest ? one.rest(off) : (one.input.disabled = off); },
    blame(name, errorId) {
      for (const { control, input } of all) {
        const guilty = control.name === name;
        guilty ? input.setAttribute('aria-invalid', 'true') : input.removeAttribute('aria-invalid');
        guilty ? input.setAttribute('aria-errormessage', errorId) : input.removeAttribute('aria-errormessage');
        if (guilty && control.more && more) more.open = true;
      }
    },
  };
}

function presetBar(spec, choose) {
  const buttons = spec.presets.map(([label, values]) => button(label, () => choose({ ...values })));
  const same = (a, b) => Object.keys(a).every(name => a[name] === b[name]);
  return {
    node: make('div', { class: 'tbt-presets', role: 'group', 'aria-label': 'Presets' }, ...buttons),
    show(values) { buttons.forEach((one, i) => put(one, { 'aria-pressed': same(spec.presets[i][1], values) })); },
    rest(off) { buttons.forEach(one => { one.disabled = off; }); },
  };
}

// ---- the picture

const GEOMETRY = {
  rect: m => ({ x: m.x, y: m.y, width: m.w, height: m.h }),
  circle: m => ({ cx: m.x, cy: m.y, r: m.r }),
  line: m => ({ x1: m.x, y1: m.y, x2: m.x2, y2: m.y2 }),
  text: m => ({ x: m.x, y: m.y, 'text-anchor': m.a }),
  path: m => ({ d: 'M' + m.p.map((v, i) => (i % 2 ? v + ' ' : v + ',')).join('') + (m.closed ? 'Z' : '') }),
  grid: () => ({}),
};
const TAG = { grid: 'g' };

// A map is one shape for each kind of cell, hairlines over them, and a frame.
function drawMap(node, mark) {
  const shapes = [
    ...mark.fills.map(([role, d]) => ['path', { class: `cells ${role}`, d }]),
    ['path', { class: mark.thin ? 'hairlines thin' : 'hairlines', d: mark.rules }],
    ['rect', { class: 'frame', x: mark.x, y: mark.y, width: mark.w, height: mark.h }],
  ];
  while (node.childElementCount > shapes.length) node.lastChild.remove();
  shapes.forEach(([tag, attributes], i) => put(node.children[i] ?? node.appendChild(document.createElementNS(SVG, tag)), attributes));
}

// Its cells come as runs: [cell, how many, cell, how many, ...].
function cellAt(mark, place) {
  let i = 0;
  for (let end = mark.runs[1]; end <= place; end += mark.runs[i + 1]) i += 2;
  return mark.runs[i];
}

function mapTip(mark, svg, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const count = mark.runs.reduce((sum, many, i) => sum + (i % 2 ? many : 0), 0);
  const inside = (share, many) => Math.min(many - 1, Math.max(0, Math.floor(share * many)));
  const column = inside((at.x - mark.x) / mark.w, mark.n), row = inside((at.y - mark.y) / mark.h, count / mark.n);
  return `${mark.unit.replace('{row}', row).replace('{column}', column)}, ${mark.names[cellAt(mark, row * mark.n + column)]}`;
}

function picture(uid, defs) {
  const svg = document.createElementNS(SVG, 'svg');
  put(svg, { class: 'tbt-scene', role: 'img' });
  svg.innerHTML = defs.replaceAll('{uid}', uid);
  svg.style.setProperty('--tbt-hatch-waste', `url(#${uid}-waste)`);
  svg.style.setProperty('--tbt-hatch-dropped', `url(#${uid}-dropped)`);
  const layer = svg.appendChild(document.createElementNS(SVG, 'g'));
  const ring = svg.appendChild(document.createElementNS(SVG, 'rect'));
  put(ring, { class: 'tbt-focus', display: 'none' });
  const tip = make('div', { class: 'tbt-tip', hidden: true });
  const walk = make('input', { type: 'range', class: 'tbt-walk', min: 0, step: 1, value: 0, 'aria-label': 'Read the picture, mark by mark', ...KEYS });
  const stage = make('div', { class: 'tbt-stage' }, svg, walk, tip);
  const pool = new Map();
  let marks = new Map(), told = [];

  function draw(frame) {
    put(svg, { viewBox: `0 0 ${frame.w} ${frame.h}`, 'aria-label': frame.summary });
    marks = frame.marks;
    let place = layer.firstChild;
    for (const mark of marks.values()) {
      let node = pool.get(mark.id);
      if (!node || node.dataset.kind !== mark.t) {
        node?.remove();
        if (place === node) place = layer.firstChild;
        node = document.createElementNS(SVG, TAG[mark.t] || mark.t);
        node.dataset.kind = mark.t;
        node.dataset.id = mark.id;
        pool.set(mark.id, node);
      }
      if (node === place) place = place.nextSibling;
      else layer.insertBefore(node, place);
      patch(node, mark);
    }
    for (const [id, node] of pool) if (!marks.has(id)) { node.remove(); pool.delete(id); }
    told = [...marks.values()].filter(mark => mark.tip);
    put(walk, { max: Math.max(0, told.length - 1) });
    walk.disabled = !told.length;
    if (document.activeElement === walk) point(); else hide();
  }

  function patch(node, mark) {
    put(node, GEOMETRY[mark.t](mark));
    put(node, { class: [mark.role, mark.size, mark.b && 'bold', mark.closed && 'closed'].filter(Boolean).join(' ') });
    if (mark.t === 'text') say(node, mark.s);
    if (mark.t === 'grid') drawMap(node, mark);
  }

  function showTip(text, x, y) {
    const box = stage.getBoundingClientRect();
    tip.textContent = text;
    tip.hidden = false;
    const half = tip.offsetWidth / 2, left = Math.min(box.width - half, Math.max(half, x - box.left));
    tip.style.left = `${left}px`;
    tip.style.top = `${y - box.top}px`;
  }

  function hide() { if (!tip.hidden) tip.hidden = true; put(ring, { display: 'none' }); }

  function point() {
    const mark = told[Math.min(+walk.value, told.length - 1)];
    if (!mark) return hide();
    const node = pool.get(mark.id), box = node.getBBox(), seen = node.getBoundingClientRect();
    walk.setAttribute('aria-valuetext', mark.tip);
    put(ring, { x: box.x - 3, y: box.y - 3, width: box.width + 6, height: box.height + 6, display: 'inline' });
    showTip(mark.tip, seen.left + seen.width / 2, seen.top);
  }

  svg.addEventListener('pointermove', event => {
    const mark = marks.get(event.target.closest('[data-id]')?.dataset.id);
    if (!mark?.tip) return hide();
    showTip(mark.t === 'grid' ? mapTip(mark, svg, event) : mark.tip, event.clientX, event.clientY);
  });
  svg.addEventListener('pointerleave', hide);
  walk.addEventListener('input', point);
  walk.addEventListener('focus', point);
  walk.addEventListener('blur', hide);

  return { node: stage, draw };
}

// ---- steps

function stepper(noun, go) {
  let at = 0, count = 1, timer = 0;
  const to = index => { at = Math.min(count - 1, Math.max(0, index)); go(at); show(); };
  const stop = () => { clearInterval(timer); timer = 0; show(); };
  const by = hand => () => { stop(); hand(); };
  const back = button('Back', by(() => to(at - 1)));
  const play = button('Play', () => {
    if (timer) return stop();
    if (at === count - 1) to(0);
    timer = setInterval(() => (at < count - 1 ? to(at + 1) : stop()), PLAY_MS);
    show();
  });
  const step = button('Step', by(() => to(at + 1)));
  const reset = button('Reset', by(() => to(0)));
  const scrub = make('input', { type: 'range', min: 0, step: 1, 'aria-label': `Step through each ${noun}`, ...KEYS });
  scrub.addEventListener('input', () => { const wanted = +scrub.value; stop(); to(wanted); });
  const where = make('span', { class: 'tbt-where', 'aria-hidden': 'true' });
  function show() {
    put(scrub, { max: count - 1, 'aria-valuetext': `step ${at + 1} of ${count}` });
    scrub.value = at;
    say(where, `step ${at + 1} of ${count}`);
    say(play, timer ? 'Pause' : 'Play');
    back.disabled = reset.disabled = at === 0;
    step.disabled = at === count - 1;
  }
  return {
    node: make('div', { class: 'tbt-stepper', role: 'group', 'aria-label': 'Steps' }, reset, back, play, step, scrub, where),
    frames(length, start) { count = length; at = Math.min(length - 1, start ?? at); show(); return at; },
    stop,
  };
}

// ---- words and data

function words() {
  const p = name => make('p', { class: `tbt-${name}`, hidden: true });
  const figures = make('dl', { class: 'tbt-figures' }), formula = make('dl', { class: 'tbt-formula' });
  const keys = make('div', { class: 'tbt-keys' });
  const one = { caption: p('caption'), warning: p('warning'), beside: p('beside'), takeaway: p('takeaway') };
  return {
    figures,
    rest: [one.caption, keys, one.warning, one.beside, one.takeaway, formula],
    show(frame) {
      for (const name of ['caption', 'warning', 'takeaway']) fill(one[name], frame[name]);
      fill(one.beside, frame.beside.join('\n'));
      list(figures, frame.figures, () => make('div', {}, make('dt'), make('dd')), ({ children: [name, value] }, [label, text, role]) => {
        say(name, label);
        say(value, text);
        put(value, { class: role });
      });
      list(formula, frame.formula.flat(), i => make(i % 2 ? 'dd' : 'dt'), say);
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
    copying('Copy as code', code, 'Code copied.'));
  const show = () => { if (node.open && state.frame) fillTable(); };
  node.addEventListener('toggle', show);
  return { node, show };
}

function lock(spec, uid, commit) {
  const input = make('input', { type: 'number', step: 'any', id: `${uid}-guess`, required: true, ...KEYS });
  const sure = make('button', { type: 'submit', class: 'tbt-commit', ...KEYS }, 'Commit');
  const row = make('div', { class: 'tbt-row' }, input, spec.prediction.unit, sure);
  const form = make('form', { class: 'tbt-prediction' }, make('label', { for: input.id }, spec.prediction.question), row);
  // JupyterLab keeps Enter from submitting a form by itself
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter') { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener('submit', event => { event.preventDefault(); commit(input.valueAsNumber); });
  return form;
}

function sayVerdict({ near, guess, truth, unit, within }) {
  const tail = near ? `Your prediction is within ${within}.` : `Your prediction is more than ${within} off: find out why below.`;
  return `You said ${guess}; it is ${truth} ${unit}. ${tail}`.replace(' .', '.');
}

// ---- all of it

export function mount(host, adapter) {
  const spec = adapter.spec, uid = 'tbt' + Math.random().toString(36).slice(2, 9);
  const state = { values: { ...spec.start }, guess: null, frames: [], frame: null };
  const live = make('div', { class: 'tbt-unseen', role: 'status' });
  let timer = 0;
  const announce = (text, after = ANNOUNCE_MS) => {
    clearTimeout(timer);
    timer = setTimeout(() => { live.textContent = text; }, after);
  };

  const error = make('p', { class: 'tbt-error', id: `${uid}-error`, hidden: true });
  const wait = make('p', { class: 'tbt-error', hidden: true }, adapter.waiting || 'Waiting for Python: another cell may be running.');
  const post = courier(adapter, uid, late => { wait.hidden = !late; });
  const send = () => post.send({ values: state.values, guess: state.guess });
  const leap = far => put(root, { 'data-leap': far });
  const change = (values, far) => { leap(far); Object.assign(state.values, values); presets.show(state.values); send(); };

  const presets = presetBar(spec, values => { controls.show(values); change(values, true); });
  const controls = controlPanel(spec, uid, (name, value) => change({ [name]: value }, false));
  const pic = picture(uid, spec.defs), text = words();
  const steps = spec.noun ? stepper(spec.noun, at => { leap(true); show(at); announce(state.frame.caption); }) : null;
  const data = dataPanel(spec, state, announce);
  const body = make('div', { hidden: true }, text.figures, pic.node, steps?.node, ...text.rest, data.node);
  const verdict = make('p', { class: 'tbt-verdict', tabindex: -1, hidden: true });
  const shut = make('div', { class: 'tbt-shut', hidden: true }, 'The picture opens with your prediction.');
  const form = spec.prediction ? lock(spec, uid, guess => {
    state.guess = Number.isFinite(guess) ? guess : null;
    if (state.guess !== null) send();
  }) : null;
  const root = make('div', { class: 'tbt', role: 'group', 'aria-label': spec.title, 'data-revision': 0 },
    make('p', { class: 'tbt-title' }, spec.title), make('h3', { class: 'tbt-question' }, spec.question),
    form, verdict, presets.node, ...controls.nodes, error, wait, shut, body,
    spec.source ? make('p', { class: 'tbt-source' }, `After ${spec.source}`) : null, live);

  function show(at) {
    state.frame = state.frames[at];
    root.dataset.step = at;
    pic.draw(state.frame);
    text.show(state.frame);
    data.show();
  }

  function setLocked(on, height = 320) {
    presets.rest(on);
    controls.rest(on);
    shut.hidden = !on;
    shut.style.aspectRatio = `720 / ${height}`;
    body.hidden = on;
    root.dataset.locked = on;
  }

  function receive(answer, first = false) {
    const settled = post.landed(answer);
    fill(error, answer.error ? `${answer.error}.${state.frame ? ' The picture shows the last state that was right.' : ''}` : '');
    controls.blame(answer.control, error.id);
    pic.node.dataset.stale = Boolean(answer.error);
    if (answer.error) announce(answer.error);
    else if (answer.locked) setLocked(true, answer.height);
    else open(answer, settled, first);
    root.dataset.revision = answer.revision;
  }

  function open(answer, settled, first) {
    if (settled) { state.values = { ...answer.values }; controls.show(state.values); presets.show(state.values); }
    state.frames = expand(answer.frames);
    const opening = !state.frame;
    if (opening) setLocked(false);
    show(steps ? steps.frames(state.frames.length, opening ? answer.first : null) : 0);
    if (answer.verdict && form?.isConnected) {
      form.remove();
      verdict.dataset.near = answer.verdict.near;
      fill(verdict, sayVerdict(answer.verdict));
      verdict.focus();
    } else if (!first) announce(state.frame.summary);
  }

  const stop = adapter.listen(receive);
  controls.show(state.values);
  presets.show(state.values);
  host.append(root);
  receive(adapter.answer, true);
  return () => { stop(); post.stop(); steps?.stop(); clearTimeout(timer); root.remove(); };
}

function render({ model, el }) {
  const spec = model.get('spec');
  el.append(make('style', {}, `#${spec.saved} { display: none; }`));
  return mount(el, {
    spec,
    answer: JSON.parse(model.get('answer')),
    ask(request) { model.set('request', request); model.save_changes(); },
    listen(callback) {
      const heard = () => callback(JSON.parse(model.get('answer')));
      model.on('change:answer', heard);
      return () => model.off('change:answer', heard);
    },
  });
}

export default { render };
