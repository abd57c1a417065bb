// Handles: what the picture is about, dragged and keyed in the picture itself. Each is bound to the input of a
// control; for the keyboard and for a screen reader it is a native slider of that name, laid over its knob.

const ARROWS = { x: 'M-12,-3.5 L-16,0 L-12,3.5 M12,-3.5 L16,0 L12,3.5', y: 'M-3.5,-12 L0,-16 L3.5,-12 M-3.5,12 L0,16 L3.5,12' };

function drawKnob(node, mark) {
  const ways = mark.drag.map(one => ARROWS[one.axis]).join(' ');
  shapes(node, [
    ['circle', { class: 'reach', r: 20 }],
    ['path', { class: 'halo', d: ways }],
    ['circle', { class: 'halo', r: 9 }],
    ['circle', { class: 'knob', r: 7.5 }],
    ['path', { class: 'ways', d: ways }],
  ]);
  put(node, { 'data-axis': mark.drag.map(one => one.axis).join('') });
}

const SWEEP = 48, STOP = 24;  // units: a pull through all stops takes at least so many, and one stop never needs more than that

// Where the pointer has to be for each stop once the knob was taken at stop `from`: at its place, or as far on as leaves every
// stop a piece of the way. So stops that (nearly) share a place, beyond an axis or where the picture hardly changes, come one after
// the other, and a twitch of the hand never skips several.
function track(places, from, axis) {
  const way = Math.sign(places.at(-1) - places[0]) || (axis === 'y' ? -1 : 1), each = Math.min(STOP, SWEEP / (places.length - 1)), at = [...places];
  for (let i = from + 1; i < at.length; i++) at[i] = way * Math.max(way * at[i], way * at[i - 1] + each);
  for (let i = from - 1; i >= 0; i--) at[i] = way * Math.min(way * at[i], way * at[i + 1] - each);
  return at;
}

const nearestPlace = (places, at) => places.reduce((best, one, i) => (Math.abs(one - at) < Math.abs(places[best] - at) ? i : best), 0);

const clamp = (value, places) => Math.min(Math.max(...places), Math.max(Math.min(...places), value));

let known = false;  // a reader who has pulled one knob of a page needs no names on the others

// `to`: { label(name), words(name, value), value(name), set(name, value) }, the controls that handles are bound to.
function grips(svg, stage, pool, to, showTip, spotFor) {
  const inputs = new Map(), names = new Map();
  let marks = [], drag = null, off = false;

  // One knob may be bound to another control after a change: a slider of another name then stands over it.
  const key = (mark, one) => `${mark.id} ${one.axis} ${one.input}`;
  const words = mark => mark.drag.map(one => `${to.label(one.input)}: ${to.words(one.input, to.value(one.input))}`).join(', ') + ' · drag';
  const reach = (mark, one) => nearestStop(one.to, to.value(one.input));
  const tracked = one => track(one.at, drag.from[one.axis], one.axis);

  function nearestStop(stops, value) {
    const at = stops.indexOf(value);
    return at >= 0 || typeof value !== 'number' ? Math.max(0, at) : nearest(stops, value);
  }

  function made(mark, one) {
    const input = make('input', { type: 'range', class: 'tbt-grip', min: 0, step: 1, 'aria-label': `${to.label(one.input)}, in the picture`, 'data-grip': mark.id, 'data-term': one.input, ...KEYS });
    const now = () => marks.find(other => other.id === mark.id)?.drag.find(other => other.axis === one.axis);
    // An arrow key moves the knob where it points.
    input.addEventListener('keydown', event => {
      const way = { x: { ArrowLeft: -1, ArrowRight: 1 }, y: { ArrowUp: -1, ArrowDown: 1 } }[one.axis][event.key];
      const told = now();
      if (!way || !told) return;
      event.preventDefault();
      const grows = Math.sign(told.at.at(-1) - told.at[0]) || 1;
      const next = Math.min(told.to.length - 1, Math.max(0, +input.value + way * grows));
      if (next !== +input.value) { input.value = next; moved(told); }
    });
    const moved = told => {
      const value = told.to[+input.value];
      put(input, { 'aria-valuetext': to.words(told.input, value) });
      to.set(told.input, value);
    };
    input.addEventListener('input', () => moved(now()));
    leads.set(input, way => {
      const told = now(), next = +input.value + way;
      return told && next in told.to ? [told.input, told.to[next]] : null;
    });
    input.addEventListener('focus', () => { pool.get(mark.id)?.classList.add('focused'); });
    input.addEventListener('blur', () => pool.get(mark.id)?.classList.remove('focused'));
    return input;
  }

  function told(all) {
    marks = [...all.values()].filter(mark => mark.t === 'handle');
    const wanted = new Set();
    for (const mark of marks) {
      for (const one of mark.drag) {
        const id = key(mark, one);
        wanted.add(id);
        if (!inputs.has(id)) { inputs.set(id, made(mark, one)); stage.insertBefore(inputs.get(id), stage.lastChild); }
        const input = inputs.get(id), at = reach(mark, one);
        put(input, { max: one.to.length - 1, 'aria-valuetext': to.words(one.input, to.value(one.input)) });
        if (+input.value !== at) input.value = at;
        input.disabled = off;
        if (document.activeElement === input) pool.get(mark.id)?.classList.add('focused');
      }
      moved(mark);
    }
    for (const [id, input] of inputs) if (!wanted.has(id)) { input.remove(); inputs.delete(id); }
    if (drag && !marks.some(mark => mark.id === drag.id)) drag = null;
    follow();
  }

  // The slider stands where its knob does, for zoom and for touch exploration.
  function moved(mark) {
    const box = svg.viewBox.baseVal;
    for (const one of mark.drag) {
      const style = inputs.get(key(mark, one))?.style;
      style?.setProperty('left', `${(100 * mark.x) / box.width}%`);
      style?.setProperty('top', `${(100 * mark.y) / box.height}%`);
    }
    const name = names.get(mark.id);
    if (name) Object.assign(name.style, { left: `${(100 * mark.x) / box.width}%`, top: `${(100 * mark.y) / box.height}%` });
  }

  // Until a reader does something, each knob says what it is, where its words cover nothing; elsewhere its arrows do.
  function name() {
    unname();
    if (known || off) return;
    for (const mark of marks.filter(one => !one.late && !one.named)) {  // its question, or its name, stands next to it
      const words = mark.drag.map(one => to.label(one.input)).join(', ');
      const label = stage.appendChild(make('div', { class: 'tbt-name', 'aria-hidden': 'true' }, words));
      names.set(mark.id, label);
      moved(mark);
      const { x, y, width, height } = pool.get(mark.id).querySelector('.knob').getBoundingClientRect();
      const spot = spotFor(label, x + width / 2, y + height / 2);
      if (spot) Object.assign(label.style, { marginLeft: `${spot[0]}px`, marginTop: `${spot[1]}px` });
      else { label.remove(); names.delete(mark.id); }
    }
  }
  function unname() {
    for (const label of names.values()) label.remove();
    names.clear();
  }

  // While it is held, the knob is where the pointer is, past the end of an axis too; the rest follows its answers.
  function follow() {
    if (!drag) return;
    const mark = marks.find(one => one.id === drag.id), place = { x: mark.x, y: mark.y };
    for (const one of mark.drag) place[one.axis] = clamp(drag[one.axis] + drag.off[one.axis], tracked(one));
    put(pool.get(mark.id), { transform: `translate(${place.x} ${place.y})` });
  }

  function pull(event) {
    const at = inPicture(svg, event), mark = marks.find(one => one.id === drag.id);
    Object.assign(drag, { x: at.x, y: at.y });
    for (const one of mark.drag) {
      if (!drag) return;  // a picture that was known is drawn at once, and may have no such knob
      const value = one.to[nearestPlace(tracked(one), at[one.axis] + drag.off[one.axis])];
      if (mark.late) drag.late = [one.input, value];
      else if (value !== to.value(one.input)) to.set(one.input, value);
    }
    follow();
    showTip(mark.late ? `${to.label(drag.late[0])}: ${to.words(...drag.late)}` : words(mark), event.clientX, event.clientY, mark.id);
  }

  svg.addEventListener('pointerdown', event => {
    const node = event.target.closest('[data-kind="handle"]');
    const mark = node && marks.find(one => one.id === node.dataset.id);
    if (!mark || off || event.button) return;
    event.preventDefault();
    const at = inPicture(svg, event);
    known = true;
    drag = { id: mark.id, x: at.x, y: at.y, off: { x: mark.x - at.x, y: mark.y - at.y }, from: Object.fromEntries(mark.drag.map(one => [one.axis, reach(mark, one)])) };
    svg.setPointerCapture(event.pointerId);
    svg.dataset.holding = mark.drag.map(one => one.axis).join('');
    inputs.get(key(mark, mark.drag[0]))?.focus({ preventScroll: true });
  });
  svg.addEventListener('pointermove', event => { if (drag) pull(event); });
  const drop = () => {
    const mark = drag && marks.find(one => one.id === drag.id);
    const late = drag?.late;
    drag = null;
    if (late && late[1] !== to.value(late[0])) to.set(...late);
    delete svg.dataset.holding;
    if (mark) { put(pool.get(mark.id), GEOMETRY.handle(mark)); showTip(''); }
  };
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) svg.addEventListener(end, drop);

  return { told, moved, name, unname, words, busy: () => Boolean(drag), rest(on) { off = on; for (const input of inputs.values()) input.disabled = on; }, stop: drop };
}
