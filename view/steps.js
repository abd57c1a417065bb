// Steps: back, play, pause, step, a scrubber and a speed. Playing glides from state to state where motion is
// welcome.

const SPEEDS = [0.5, 1, 2, 4];

// A short story takes its time, a long one does not take for ever.
const pace = (count, speed) => Math.min(1400, Math.max(160, 16000 / count)) / speed;

function stepper(noun, go, playing) {
  let at = 0, count = 1, timer = 0, speed = 1;
  const to = (index, ms, clockMs = ms) => { at = Math.min(count - 1, Math.max(0, index)); go(at, ms, clockMs); show(); };
  const on = () => Boolean(timer);
  const stop = () => { clearTimeout(timer); timer = 0; playing(false); show(); };
  const by = hand => () => { stop(); hand(); };
  const next = () => {
    if (count > 1 && at === count - 1) return stop();
    const wait = pace(count, speed);
    timer = setTimeout(() => { if (count > 1) to(at + 1, 0.8 * wait, wait); next(); }, wait);
  };
  const back = button('Back', by(() => to(at - 1, GLIDE_MS)));
  const play = button('Play', () => {
    if (on()) return stop();
    if (at === count - 1) to(0, 0);
    next();
    playing(on());
    show();
  }, { class: 'tbt-play' });
  const step = button('Step', by(() => to(at + 1, 2 * GLIDE_MS)));
  const reset = button('Reset', by(() => to(0, GLIDE_MS)));
  const scrub = make('input', { type: 'range', min: 0, step: 1, 'aria-label': `Step through each ${noun || 'step'}`, ...KEYS });
  scrub.addEventListener('input', () => { const wanted = +scrub.value; stop(); to(wanted, 0); });
  const where = make('span', { class: 'tbt-where', 'aria-hidden': 'true' });
  const fast = make('select', { 'aria-label': 'Speed', class: 'tbt-speed', ...KEYS }, ...SPEEDS.map(one => make('option', { value: one }, `${one}×`)));
  fast.value = speed;
  fast.addEventListener('change', () => { speed = +fast.value; });
  const node = make('div', { class: 'tbt-stepper', role: 'group', 'aria-label': 'Steps' }, reset, back, play, step, make('div', { class: 'tbt-scrub' }, scrub, where, fast));
  function show() {
    put(scrub, { max: count - 1, 'aria-valuetext': `step ${at + 1} of ${count}` });
    scrub.value = at;
    say(where, `${at + 1} of ${count}`);
    say(play, on() ? 'Pause' : at === count - 1 ? 'Play again' : 'Play');
    back.disabled = reset.disabled = at === 0;
    step.disabled = at === count - 1;
    node.hidden = count < 2;
  }
  return {
    node,
    frames(length, start) {
      const stay = at === count - 1 ? length - 1 : at;  // the whole picture stays whole when it gains steps
      at = Math.min(length - 1, start ?? stay);
      count = length;
      show();
      return at;
    },
    to: index => { stop(); to(index, GLIDE_MS); },
    stop,
    get playing() { return on(); },
  };
}
