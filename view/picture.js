// The picture: marks by id, patched in place; a leap or a step glides from state to state.

const GEOMETRY = {
  rect: m => ({ x: m.x, y: m.y, width: m.w, height: m.h }),
  circle: m => ({ cx: m.x, cy: m.y, r: m.r }),
  line: m => ({ x1: m.x, y1: m.y, x2: m.x2, y2: m.y2 }),
  text: m => ({ x: m.x, y: m.y, 'text-anchor': m.a }),
  path: m => ({ d: 'M' + m.p.map((v, i) => (i % 2 ? v + ' ' : v + ',')).join('') + (m.closed ? 'Z' : '') }),
  handle: m => ({ transform: `translate(${m.x} ${m.y})` }),
  grid: () => ({}),
};
const TAG = { grid: 'g', handle: 'g' };
const MOVING = ['x', 'y', 'w', 'h', 'r', 'x2', 'y2'];

const drawn = tag => document.createElementNS(SVG, tag);

function shapes(node, wanted) {
  while (node.childElementCount > wanted.length) node.lastChild.remove();
  wanted.forEach(([tag, attributes], i) => put(node.children[i] ?? node.appendChild(drawn(tag)), attributes));
}

// A map is one shape for each kind of cell, hairlines over them, and a frame.
function drawMap(node, mark) {
  shapes(node, [
    ...mark.fills.map(([role, d]) => ['path', { class: `cells ${role}`, d }]),
    ['path', { class: mark.thin ? 'hairlines thin' : 'hairlines', d: mark.rules }],
    ['rect', { class: 'frame', x: mark.x, y: mark.y, width: mark.w, height: mark.h }],
  ]);
}

// Its cells come as runs: [cell, how many, cell, how many, ...].
function cellAt(mark, place) {
  let i = 0;
  for (let end = mark.runs[1]; end <= place; end += mark.runs[i + 1]) i += 2;
  return mark.runs[i];
}

const inPicture = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

function cellUnder(mark, svg, event) {
  const at = inPicture(svg, event);
  const count = mark.runs.reduce((sum, many, i) => sum + (i % 2 ? many : 0), 0);
  const inside = (share, many) => Math.min(many - 1, Math.max(0, Math.floor(share * many)));
  return [inside((at.y - mark.y) / mark.h, count / mark.n), inside((at.x - mark.x) / mark.w, mark.n)];
}

function mapTip(mark, svg, event) {
  const [row, column] = cellUnder(mark, svg, event);
  return `${mark.unit.replace('{row}', row).replace('{column}', column)}, ${mark.names[cellAt(mark, row * mark.n + column)]}`;
}

// From one mark to another, where both have the same numbers; the rest changes at once.
function between(from, to, share) {
  const now = { ...to };
  for (const name of MOVING) if (name in to && name in from) now[name] = from[name] + share * (to[name] - from[name]);
  if (to.p && from.p?.length === to.p.length) now.p = to.p.map((value, i) => from.p[i] + share * (value - from.p[i]));
  return now;
}

// What of a mark has come to pass when the clock's line stands at x; null while it is still to come.
function passed(mark, x) {
  if (mark.t === 'rect') return x > mark.x ? { ...mark, w: Math.min(mark.w, x - mark.x) } : null;
  return x >= Math.max(mark.x ?? 0, mark.x2 ?? mark.x ?? 0, ...(mark.p ?? []).filter((_, i) => i % 2 === 0)) ? mark : null;
}

// Moves what differs, frame by frame; a new move starts from where the last one stands.
function glider(place) {
  const shown = new Map();
  let moves = [], began = 0, lasts = 0, waiting = 0, even = false;
  const under = (share, [, from, to, clock]) => {
    if (share === 1) return to;
    if (clock) return passed(from.w > to.w ? from : to, shown.get(clock)?.x ?? Infinity);
    return between(from, to, even ? share : share * share * (3 - 2 * share));
  };
  const tick = now => {
    const share = Math.min(1, Math.max(0, now - began) / lasts);  // a frame may bear an earlier time than the move's start
    for (const move of moves) {
      const mark = under(share, move);
      if (mark) set(move[0], mark); else move[0].toggleAttribute('hidden', true);
    }
    waiting = share < 1 ? requestAnimationFrame(tick) : 0;
  };
  const set = (node, mark) => {
    shown.set(mark.id, mark);
    put(node, GEOMETRY[mark.t](mark));
    if (node.hasAttribute('hidden')) node.removeAttribute('hidden');
    place(mark);
  };
  return {
    set,
    at: id => shown.get(id),
    drop: id => shown.delete(id),
    // A clock goes evenly, and before what it uncovers.
    start(pairs, ms, clockMs) {
      cancelAnimationFrame(waiting);
      const clocks = new Set(pairs.map(move => move[3]).filter(Boolean));
      even = clocks.size > 0;
      moves = pairs.sort((one, other) => clocks.has(other[2].id) - clocks.has(one[2].id));
      began = performance.now();
      lasts = even ? clockMs : ms;
      if (moves.length) tick(began);
    },
    stop() { cancelAnimationFrame(waiting); },
  };
}

// Where a mark comes from that comes along with another one.
function carried(mark, from, to) {
  const [x, y] = [from.x - to.x, from.y - to.y], by = { x, x2: x, y, y2: y }, start = { ...mark };
  for (const name in by) if (name in mark) start[name] += by[name];
  if (mark.p) start.p = mark.p.map((value, i) => value + (i % 2 ? y : x));
  return start;
}

// Whether a straight piece meets a box: the part of it that is within the box's sides, one side after the other.
function crosses([x1, y1, x2, y2], left, top, right, low) {
  let from = 0, to = 1;
  for (const [way, room] of [[x1 - x2, x1 - left], [x2 - x1, right - x1], [y1 - y2, y1 - top], [y2 - y1, low - y1]]) {
    if (way < 0) from = Math.max(from, room / way);
    else if (way > 0) to = Math.min(to, room / way);
    else if (room < 0) return false;
  }
  return from <= to;
}

const same = (a, b) => MOVING.every(name => a[name] === b[name]) && (a.p === b.p || String(a.p) === String(b.p));

function picture(uid, defs, name) {
  const svg = drawn('svg');
  put(svg, { class: 'tbt-scene', role: 'img' });
  svg.innerHTML = defs.replaceAll('{uid}', uid);
  for (const pattern of svg.querySelectorAll('pattern, linearGradient')) {
    svg.style.setProperty(`--tbt-fill-${pattern.id.slice(uid.length + 1)}`, `url(#${pattern.id})`);
  }
  const layer = svg.appendChild(drawn('g'));
  const ring = svg.appendChild(drawn('rect'));
  put(ring, { class: 'tbt-focus', display: 'none' });
  const tip = make('div', { class: 'tbt-tip', hidden: true });
  const walk = make('input', { type: 'range', class: 'tbt-walk', min: 0, step: 1, value: 0, 'aria-label': 'Read the picture, mark by mark', ...KEYS });
  const stage = make('div', { class: 'tbt-stage' }, svg, walk, tip);
  const pool = new Map(), glide = glider(mark => { if (mark.t === 'handle') held.moved(mark); });
  const held = grips(svg, stage, pool, name, (text, x, y, knob) => (text ? showTip(text, x, y, knob) : hide()), (label, x, y) => spotFor(label, x, y));
  let marks = new Map(), told = [], side = ['', ''];  // the knob whose words stand there, and on which side of it

  // Gliding for `ms`; where a clock goes, it takes `clockMs`, and 0 means that this change is no step of it.
  function draw(frame, ms = 0, clockMs = 0) {
    put(svg, { viewBox: `0 0 ${frame.w} ${frame.h}`, 'aria-label': frame.summary });
    stage.style.setProperty('--tbt-shape', frame.w / frame.h);
    marks = frame.marks;
    const moves = [];
    // first of all, else every mark behind one that is gone would be taken out and put back
    for (const [id, node] of pool) if (!marks.has(id)) { node.remove(); pool.delete(id); glide.drop(id); }
    let place = layer.firstChild;
    for (const mark of marks.values()) {
      let node = pool.get(mark.id);
      if (!node || node.dataset.kind !== mark.t) {
        node?.remove();
        if (place === node) place = layer.firstChild;
        glide.drop(mark.id);
        node = drawn(TAG[mark.t] || mark.t);
        node.dataset.kind = mark.t;
        node.dataset.id = mark.id;
        if (mark.t === 'text') say(node, mark.s);  // before it stands in the picture: one change, not two
        pool.set(mark.id, node);
      }
      if (node === place) place = place.nextSibling;
      else layer.insertBefore(node, place);
      patch(node, mark, ms && !stillness.matches, clockMs, moves);
    }
    glide.start(moves, ms, clockMs);
    held.told(marks);
    side = ['', ''];
    told = [...marks.values()].filter(mark => mark.tip);
    put(walk, { max: Math.max(0, told.length - 1) });
    walk.disabled = !told.length;
    if (document.activeElement === walk) point(); else if (!held.busy()) hide();
  }

  function patch(node, mark, glides, clockMs, moves) {
    const was = glide.at(mark.id), clock = clockMs ? mark.clock : '';
    if (was === mark && mark.t !== 'handle') return;  // steps share what stays; a knob may be in the hand
    const first = !was && marks.get(mark.by), stood = first && glide.at(mark.by);
    const from = was ?? (stood ? carried(mark, stood, first) : mark);
    if (glides && (was || stood || clock) && !(same(from, mark) && (was || !clock))) moves.push([node, from, mark, clock]);
    else glide.set(node, mark);
    put(node, { class: [mark.role, mark.size, mark.t === 'handle' && 'handle', mark.b && 'bold', mark.closed && 'closed',
      mark.on && `on-${mark.on}`].filter(Boolean).join(' ') });
    if ((node.dataset.term ?? '') !== (mark.k ?? '')) { if (mark.k) node.dataset.term = mark.k; else delete node.dataset.term; }
    if (mark.set) node.style.cursor = 'pointer'; else if (was?.set) node.style.cursor = '';
    if (mark.t === 'text') say(node, mark.s);
    if (mark.t === 'grid') drawMap(node, mark);
    if (mark.t === 'handle') drawKnob(node, mark);
  }

  function showTip(text, x, y, knob = '') {
    const box = stage.getBoundingClientRect();
    tip.textContent = text;
    tip.hidden = false;
    if (knob && side[0] !== knob) side = [knob, sideOf(tip, x, y)];
    put(tip, { 'data-side': knob ? side[1] : 'over' });
    const half = tip.offsetWidth / 2, beside = ['left', 'right'].includes(tip.dataset.side);
    const left = beside ? x - box.left : Math.min(box.width - half, Math.max(half, x - box.left));
    tip.style.left = `${left}px`;
    tip.style.top = `${y - box.top}px`;
  }

  // Where a knob's name covers no mark, no words and no other name, from the knob's middle; null where there is no room.
  function spotFor(label, x, y) {
    const box = stage.getBoundingClientRect(), wide = label.offsetWidth, high = label.offsetHeight;
    const across = [-0.5, -0.25, -0.75, 0, -1].map(share => share * wide), beside = [-0.5, -0.9, -0.1].map(share => share * high);
    const spots = [20, 30].flatMap(far => [...across.flatMap(at => [[at, -far - high], [at, far]]), ...beside.flatMap(at => [[far, at], [-far - wide, at]])]);
    const to = svg.getScreenCTM(), filled = [], pieces = [];
    const place = (a, b) => [to.e + to.a * a, to.f + to.d * b];
    for (const mark of marks.values()) {
      if (['grid', 'fade'].includes(mark.role) && mark.t !== 'grid') continue;
      if (mark.t === 'line') pieces.push([...place(mark.x, mark.y), ...place(mark.x2, mark.y2)]);
      else if (mark.t === 'path') for (let i = 2; i < mark.p.length; i += 2) pieces.push([...place(mark.p[i - 2], mark.p[i - 1]), ...place(mark.p[i], mark.p[i + 1])]);
      else if (mark.t === 'handle') filled.push(pool.get(mark.id).querySelector('.halo').getBoundingClientRect(), pool.get(mark.id).querySelector('.knob').getBoundingClientRect());
      else if (mark.t !== 'text' || mark.s) filled.push(pool.get(mark.id).getBoundingClientRect());
    }
    filled.push(...[...stage.querySelectorAll('.tbt-name')].filter(other => other !== label).map(other => other.getBoundingClientRect()));
    const free = ([left, top]) => {
      const a = x + left - 2, b = y + top - 2, c = a + wide + 4, d = b + high + 4;
      return a >= box.left && c <= box.right && b >= box.top && d <= box.bottom
        && !filled.some(one => one.width && one.height && one.left < c && one.right > a && one.top < d && one.bottom > b)
        && !pieces.some(piece => crosses(piece, a, b, c, d));
    };
    return spots.find(free) ?? null;
  }

  // A knob's words stand where they hide the least of what it changes: words, what decides, and other knobs.
  function sideOf(label, x, y) {
    const box = stage.getBoundingClientRect(), wide = label.offsetWidth, high = label.offsetHeight, far = 24;
    const middle = Math.max(box.left, Math.min(box.right - wide, x - wide / 2));
    const sides = { above: [middle, y - far - high], below: [middle, y + far], right: [x + far, y - high / 2], left: [x - far - wide, y - high / 2] };
    // a mark that decides may be a thin stripe: it weighs more than as many words
    const seen = [...layer.querySelectorAll(':scope > text, :scope > :is(rect, circle).hot, .knob')]
      .map(node => [node.getBoundingClientRect(), node.tagName === 'text' ? 1 : 10]);
    const meet = (low, high, from, to) => Math.max(0, Math.min(high, to) - Math.max(low, from));
    const hides = ([a, b]) => seen.reduce((sum, [one, weight]) => sum + weight * meet(a, a + wide, one.left, one.right) * meet(b, b + high, one.top, one.bottom), 0);
    const fits = ([a]) => a >= box.left && a + wide <= box.right;
    const leaves = ([, b]) => wide * (Math.max(0, box.top - b) + Math.max(0, b + high - box.bottom));  // over the figures, or the stepper
    const cost = ([name, at]) => hides(at) + leaves(at) + (['left', 'right'].includes(name) && !fits(at) ? 1e6 : 0);
    return Object.entries(sides).reduce((best, one) => (cost(one) < cost(best) ? one : best))[0];
  }

  function hide() { if (!tip.hidden) tip.hidden = true; put(ring, { display: 'none' }); }

  function point() {
    const mark = told[Math.min(+walk.value, told.length - 1)];
    if (!mark) return hide();
    const node = pool.get(mark.id), box = node.getBBox(), seen = node.getBoundingClientRect();
    walk.setAttribute('aria-valuetext', mark.tip);
    put(ring, { x: box.x - 3, y: box.y - 3, width: box.width + 6, height: box.height + 6, display: 'inline' });
    showTip(mark.tip, seen.left + seen.width / 2, seen.top);
    node.dispatchEvent(new Event('pointerover', { bubbles: true }));  // what belongs to it lights up, as under a pointer
  }

  svg.addEventListener('pointermove', event => {
    if (held.busy()) return;
    const mark = marks.get(event.target.closest('[data-id]')?.dataset.id);
    if (mark?.t === 'handle') return showTip(held.words(mark), event.clientX, event.clientY, mark.id);
    if (!mark?.tip) return hide();
    showTip(mark.t === 'grid' ? mapTip(mark, svg, event) : mark.tip, event.clientX, event.clientY);
  });
  // The inputs that a click on this mark sets, or null; each cell of a map has its own.
  function sets(event) {
    const mark = marks.get(event.target.closest('[data-id]')?.dataset.id);
    if (!mark?.set || mark.t !== 'grid') return mark?.set ?? null;
    const [row, column] = cellUnder(mark, svg, event);
    return Object.fromEntries(Object.entries(mark.set).map(([name, values]) => [name, values[row * mark.n + column]]));
  }
  svg.addEventListener('pointerleave', () => { if (!held.busy()) hide(); });
  walk.addEventListener('input', point);
  walk.addEventListener('focus', point);
  walk.addEventListener('blur', hide);

  return { node: stage, draw, svg, walk, sets, rest: held.rest, busy: held.busy, name: held.name, unname: held.unname, stop() { glide.stop(); held.stop(); } };
}
