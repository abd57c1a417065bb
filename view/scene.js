// The one view of every simulator. mount(host, adapter) draws what Python declared (adapter.spec) and what it
// answers; render() is its notebook adapter. No build step, no import: a static page loads this file too.
// adapter = { spec, answer, ask(request), listen(callback) -> stop, waiting (what to say meanwhile),
//             watch(callback) -> stop (optional: callback('' | 'restarted' | 'gone')),
//             ahead(callback) -> stop (optional: ask() takes a step to think of besides, and its picture comes here),
//             moved(query) (optional: the state as a story link has it), link(query) (optional: its address, to be copied) }

// Widths in px: where the controls have room at the picture's side, where its figures have, and where a picture is
// laid out for a phone.
const BESIDE = 978, MARGIN = 820, COLUMN = 708, PAIR = 608;

function roomFor(width) {
  if (width >= BESIDE) return 'beside';
  if (width >= MARGIN) return 'margin';
  if (width >= COLUMN) return 'column';
  return width >= PAIR ? 'pair' : 'phone';
}

// A preset opens at the step that tells its story; any other change keeps the step.
const FIRST = 'first';

const SHARE = 'Copy link to this state', SAID_MS = 2000;

const narrow = room => room === 'pair' || room === 'phone';

export function mount(host, adapter) {
  const spec = adapter.spec, uid = 'tbt' + Math.random().toString(36).slice(2, 9);
  const state = { values: { ...spec.start }, guess: null, frames: [], frame: null, glide: [0, 0], axes: null, met: false, room: 'column', near: false, asked: false };
  const live = make('div', { class: 'tbt-unseen', role: 'status' });
  let timer = 0, said = 0, lull = 0, dead = '', held = false, wantedStep = null;  // a step, or FIRST
  const announce = (text, after = ANNOUNCE_MS) => {
    clearTimeout(timer);
    timer = setTimeout(() => { live.textContent = text; }, after);
  };

  const error = make('p', { class: 'tbt-error', id: `${uid}-error`, hidden: true });
  const wait = make('p', { class: 'tbt-error', hidden: true }, adapter.waiting || 'Waiting for Python: another cell may be running.');
  const over = make('p', { class: 'tbt-error tbt-over', hidden: true });
  const known = album(spec);
  const request = () => ({ values: { ...state.values }, guess: state.guess, narrow: narrow(state.room), axes: state.axes });
  const unknown = () => (!dead && root.contains(document.activeElement) ? known.unknown(state.values, narrow(state.room)) : null);
  const post = courier(adapter, uid, late => { wait.hidden = !late || Boolean(dead); }, unknown, () => held);
  // What is known already is drawn at once, and Python is told afterwards which state that is.
  const send = () => {
    if (dead) return;
    clearTimeout(lull);
    const asked = request(), key = known.key(asked.values, asked.narrow, asked.axes), found = known.find(key);
    if (!found) return post.send(asked, key);
    present({ ...found, revision: post.tell(asked, key) }, true, 'ahead');
    rested();
  };
  // In a lull the steps that the next key may ask for are thought of, one at a time.
  const rested = () => {
    clearTimeout(lull);
    put(root, { 'data-ahead': Boolean(adapter.ahead) && !unknown() });
    lull = setTimeout(() => post.think(request()), AHEAD_MS);
  };
  const leap = (ms, clockMs = 0) => { state.glide = [ms, clockMs]; };
  const change = (values, ms = 0) => { leap(ms); Object.assign(state.values, values); presets.show(state.values); send(); };

  const presets = presetBar(spec, values => { wantedStep = FIRST; controls.show(values); change(values, GLIDE_MS); });
  const controls = controlPanel(spec, uid, (name, value) => change({ [name]: value }));
  const pic = picture(uid, spec.defs, {
    label: name => controls.of(name).control.label,
    words: (name, value) => wordsOf(controls.of(name).control, value),
    value: name => state.values[name],
    set: (name, value) => controls.set(name, value),
  });
  const text = words(name => (controls.of(name)?.input.matches('input, select') ? controls.of(name).input.focus() : null));
  const steps = stepper(spec.noun, (at, ms, clockMs) => { leap(ms, clockMs); show(at); if (!steps.playing) announce(state.frame.caption); }, on => { put(root, { 'data-playing': on }); });
  const data = dataPanel(spec, state, announce);
  // A line of the text leads to its next step, or round to its first one.
  const toLine = line => {
    const at = state.frames.map((frame, i) => (frame.line === line ? i : -1)).filter(i => i >= 0);
    if (at.length) steps.to(at.find(i => i > +root.dataset.step) ?? at[0]);
  };
  const code = codePanel(spec.code ?? [], toLine), picked = picks(pic.svg, pic.walk, toLine);
  // A mark that stands for a state sets it when it is clicked; for the keyboard its input has a slider and a knob.
  pic.svg.addEventListener('click', event => {
    const to = state.frame && !dead && root.dataset.locked !== 'true' && pic.sets(event);
    if (!to) return;
    controls.show({ ...state.values, ...to });
    change(to, GLIDE_MS);
  });
  const share = adapter.link && button(SHARE, async () => { await copy(adapter.link(query())); announce('Link copied.', 0); copied(); }, { class: 'tbt-share' });
  const copied = () => { say(share, 'Link copied'); clearTimeout(said); said = setTimeout(() => say(share, SHARE), SAID_MS); };
  const main = make('div', { class: 'tbt-main' }, text.figures, pic.node, steps.node, picked.node, ...text.under);
  const side = make('div', { class: 'tbt-side' }, ...controls.nodes, text.formula);
  const last = make('div', { class: 'tbt-last' }, ...text.last);
  const body = make('div', { class: 'tbt-body' }, main, side, last);
  const verdict = make('p', { class: 'tbt-verdict', tabindex: -1, hidden: true });
  const form = spec.prediction ? lock(spec, uid, guess => {
    state.guess = Number.isFinite(guess) ? guess : null;
    if (state.guess !== null) send();
  }) : null;
  const root = make('div', { class: 'tbt', role: 'group', 'aria-label': spec.title, 'data-simulator': spec.id, 'data-revision': 0, 'data-playing': false, 'data-room': state.room, 'data-ahead': false },
    make('h3', { class: 'tbt-question' }, spec.question), form, verdict, presets.node, error, wait, over, code.node, body, data.node,
    make('div', { class: 'tbt-foot' }, share, make('p', { class: 'tbt-source' }, spec.source ? `${spec.title}, after ${spec.source}` : spec.title)), live);
  const relight = lights(root);

  const query = () => storyQuery(spec, state.right, state.frames.length > 1 && +root.dataset.step !== state.first ? +root.dataset.step : null);

  function show(at) {
    state.frame = state.frames[at];
    root.dataset.step = at;
    pic.draw(state.frame, ...state.glide);
    text.show(state.frame);
    if (state.same) text.figures.dataset.early = at < state.frames.length - 1;
    else delete text.figures.dataset.early;
    data.show();
    code.show(state.frame.line);
    picked.show(state.frame);
    relight();
    adapter.moved?.(query());
  }

  function rest(on) {
    presets.rest(on);
    controls.rest(on);
    pic.rest(on);
  }

  // Shut, it is as tall as its question.
  function setLocked(on) {
    rest(on || Boolean(dead));
    body.hidden = presets.node.hidden = data.node.hidden = on;
    root.dataset.locked = on;
  }

  function receive(answer, first = false) {
    const { draw, settled, key } = post.landed(answer);
    if (key && !answer.locked) known.keep(key, answer);
    if (first && !answer.view && !answer.locked) known.keep(known.key(answer.values, false), answer);
    if (draw) present(answer, settled, first ? 'start' : 'python');
    rested();
  }

  // from: 'start', 'python', or 'ahead' of its question
  function present(answer, settled, from) {
    fill(error, answer.error ? `${answer.error}.${state.frame ? ' The picture shows the last state that was right.' : ''}` : '');
    controls.blame(answer.control, error.id);
    pic.node.dataset.stale = Boolean(answer.error);
    if (answer.error) announce(answer.error);
    else if (answer.locked) setLocked(true);
    else open(answer, settled, from === 'start');
    if (settled) put(root, { 'data-asking': false });
    root.dataset.from = from;
    root.dataset.revision = answer.revision;
  }

  function open(answer, settled, first) {
    state.right = answer.values;
    state.held = answer.held;
    if (settled) { state.values = { ...answer.values }; controls.show(state.values); presets.show(state.values); }
    state.frames = expand(answer.frames);
    const told = state.frames.map(frame => JSON.stringify(frame.figures));
    state.same = told.length > 1 && told.every(one => one === told[0]);  // the figures are the film's end at every step
    state.first = answer.first;
    const opening = !state.frame;
    if (opening) setLocked(false);
    show(steps.frames(state.frames.length, opening || wantedStep === FIRST ? answer.first : wantedStep));
    if (settled) wantedStep = null;
    if (answer.verdict && form?.isConnected) {
      form.remove();
      verdict.dataset.near = answer.verdict.near;
      fill(verdict, sayVerdict(answer.verdict));
      verdict.focus();
    } else if (!first) announce(state.frame.summary);
    if (settled) letGoOfAxes();
  }

  // Once the hand is gone, the axes are those of the state it left.
  function letGoOfAxes() {
    if (!state.held || held) return;
    state.held = false;
    leap(GLIDE_MS);
    send();
  }

  // Python is gone: the controls go back to what the picture shows, and rest; steps still work.
  function lost(why) {
    if (why === dead) return;
    dead = why;
    fill(over, GONE[why] ?? '');
    if (why) {
      post.forget();
      if (state.right) { state.values = { ...state.right }; controls.show(state.values); presets.show(state.values); }
      announce(GONE[why], 0);
    } else send();
    rest(Boolean(why) || root.dataset.locked === 'true');
  }

  // Another layout is asked for when the picture comes near, not by a page that only holds it somewhere.
  function fit() {
    if (root.clientWidth <= 0) return;
    state.room = roomFor(root.clientWidth);
    put(root, { 'data-room': state.room });
    controls.keep(state.room === 'phone' ? 2 : 4);
    if (state.near && !state.met && state.frame) pic.name();
    const drawn = state.frame ? state.frame.w : null;
    const wanted = narrow(state.room) !== Boolean(state.asked);
    if (wanted && state.near) {
      state.asked = narrow(state.room);
      if (drawn !== null || root.dataset.locked === 'true') { put(root, { 'data-asking': true }); send(); }
    }
  }
  const sizes = new ResizeObserver(fit);
  const nearness = new IntersectionObserver(seen => { state.near = seen.at(-1).isIntersecting; if (state.near) fit(); }, { rootMargin: '400px' });

  root.addEventListener('tbt-set', event => {
    root.scrollIntoView({ block: 'nearest', behavior: stillness.matches ? 'auto' : 'smooth' });
    if (root.dataset.locked === 'true') { form.querySelector('input').focus(); return announce('Commit your prediction first.', 0); }
    if (dead) return announce(GONE[dead], 0);
    const { values, step } = storyValues(spec, event.detail);
    const changes = Object.keys(values).some(name => values[name] !== state.values[name]);
    if (changes) { wantedStep = step; controls.show(values); change(values, GLIDE_MS); } else if (step !== null) steps.to(step);
  });
  serveStories();

  // While a hand pulls something, Python works for it alone, and the axes stay as the hand found them.
  const grasp = event => {
    held = true;
    if (state.right && event.target.closest('[data-kind="handle"], input[type="range"]:not(.tbt-stepper *)')) state.axes = { ...state.right };
  };
  const free = () => {
    if (!held) return;
    held = false;
    state.axes = null;
    letGoOfAxes();
    rested();
  };
  root.addEventListener('pointerdown', grasp, { capture: true });
  const meet = () => { state.met = true; pic.unname(); };
  for (const deed of ['pointerdown', 'keydown', 'input']) root.addEventListener(deed, meet, { capture: true, once: true });
  root.addEventListener('focusin', rested);
  const ends = ['pointerup', 'pointercancel'];
  for (const end of ends) window.addEventListener(end, free, { capture: true });
  const letGo = () => { for (const end of ends) window.removeEventListener(end, free, { capture: true }); };
  const foreseen = adapter.ahead?.(answer => {
    if (answer.view !== uid) return;
    known.keep(answer.key, answer);
    post.thought();
    rested();
  });

  const stops = [adapter.listen(receive), foreseen, letGo, adapter.watch?.(lost), () => sizes.disconnect(), () => nearness.disconnect(),
    post.stop, steps.stop, pic.stop, () => { clearTimeout(timer); clearTimeout(said); clearTimeout(lull); }, () => root.remove()];
  controls.keep(4);
  controls.show(state.values);
  presets.show(state.values);
  host.append(root);
  receive(adapter.answer, true);
  sizes.observe(root);
  nearness.observe(root);
  return () => { for (const stop of stops) stop?.(); };
}

function render({ model, el }) {
  const spec = model.get('spec');
  el.append(make('style', {}, `#${spec.saved} { display: none; }`));
  const hear = name => callback => {
    const heard = () => callback(JSON.parse(model.get(name)));
    model.on(`change:${name}`, heard);
    return () => model.off(`change:${name}`, heard);
  };
  return mount(el, {
    spec,
    answer: JSON.parse(model.get('answer')),
    ask(request) { model.set('request', request); model.save_changes(); },
    listen: hear('answer'),
    ahead: hear('ahead'),
    watch: callback => watchKernel(model, callback),
  });
}

export default { render };
