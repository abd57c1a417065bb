"""A clock that a test turns by hand, and a walk through a stepper on it: what takes seconds to watch takes none.

The walk needs nothing of the driver, so that Chromium and Firefox walk alike.
"""

# Timers, frames and the time of day, all from one number; `pass(ms)` lets it go on, one frame at a time.
CLOCK = """() => {
  let now = performance.now(), number = 0;
  const frames = new Map(), timers = new Map();
  performance.now = () => now;
  window.requestAnimationFrame = told => { frames.set(++number, told); return number; };
  window.cancelAnimationFrame = id => { frames.delete(id); };
  window.setTimeout = (told, ms = 0) => { timers.set(++number, [now + ms, told]); return number; };
  window.clearTimeout = id => { timers.delete(id); };
  window.pass = ms => {
    for (const end = now + ms; now < end;) {
      now = Math.min(end, now + 16);
      for (const [id, [due, told]] of [...timers]) if (due <= now && timers.delete(id)) told();
      for (const [id, told] of [...frames]) if (frames.delete(id)) told(now);
    }
  };
}"""

# What a reader sees: each mark with its class, words and geometry, and every word around the picture.
SEEN = """() => {
  const root = document.querySelector('.tbt[data-revision]');
  const whole = node => [...node.attributes].map(one => `${one.name}=${one.value}`).sort().join(' ') + [...node.children].map(whole);
  const marks = [...root.querySelectorAll('svg.tbt-scene > g > *')].map(node => `${node.tagName} ${whole(node)} ${node.textContent}`);
  const words = [...root.querySelectorAll('.tbt-figures dt, .tbt-figures dd, .tbt-caption, .tbt-takeaway, .tbt-where')];
  return [...marks, ...words.map(node => node.textContent)];
}"""

# Each step as the scrubber shows it, which never glides; then forwards, back, in haste and played. What differs.
WALK = (
    """async () => {
  const seen = """
    + SEEN
    + """;
  const root = document.querySelector('.tbt[data-revision]'), steps = root.querySelector('.tbt-stepper');
  const scrub = steps.querySelector('input'), [reset, back, play, step] = steps.querySelectorAll('button');
  const last = +scrub.max, at = () => +root.dataset.step, wrong = [];
  const to = place => { scrub.value = place; scrub.dispatchEvent(new Event('input')); };
  const still = Array.from({ length: last + 1 }, (_, place) => { to(place); return seen(); });
  let moved = 0, before = '';
  const look = how => {
    const now = seen(), should = still[at()];
    const bad = should.map((one, i) => [one, now[i]]).filter(([one, is]) => one !== is);
    if (bad.length || now.length !== should.length) wrong.push([how, at(), bad.length, ...bad[0] ?? []]);
  };
  const glide = (how, button) => {
    const was = seen().join();
    button.click();
    pass(32);
    moved += ![was, still[at()].join()].includes(seen().join());
    pass(1000);
    look(how);
  };
  to(0);
  while (at() < last) glide('Step', step);
  while (at() > 0) glide('Back', back);
  for (const [button, many] of [[step, 3], [back, 2], [step, 1], [back, 1]]) for (let i = 0; i < many; i++) { button.click(); pass(48); }
  pass(1000);
  look('in haste');
  to(0);
  play.click();
  for (let shown = at(), frames = 0; at() < last && frames < 9000; frames++) {
    pass(16);
    if (at() !== shown && (shown = at()) === last) pass(2000);
  }
  look('Play');
  if (last) { glide('Back after Play', back); glide('Step after Play', step); }
  return { steps: last + 1, moved, wrong };
}"""
)


# Every frame of each step and of Play: the clocks' lines, what waits for them, and what comes along with another mark.
FRAMES = """([clocks, waits, pairs]) => {
  const root = document.querySelector('.tbt[data-revision]'), steps = root.querySelector('.tbt-stepper');
  const scrub = steps.querySelector('input'), [reset, back, play, step] = steps.querySelectorAll('button');
  const node = id => root.querySelector(`svg.tbt-scene > g > [data-id="${id}"]`);
  const number = (one, name) => parseFloat(one.getAttribute(name));
  const seen = id => { const one = node(id); return one && one.checkVisibility() ? one : null; };
  const frames = [];
  const look = () => frames.push({
    step: +root.dataset.step,
    clock: number(node(clocks[0] ?? '') ?? svg, 'x1'),
    right: waits.map(id => [id, seen(id)]).filter(([, one]) => one).map(([id, one]) => {
      const ends = one.matches('rect') ? number(one, 'x') + number(one, 'width') : Math.max(one.getBBox().x, one.matches('text') ? number(one, 'x') : one.getBBox().x + one.getBBox().width);
      return [id, ends];
    }),
    apart: pairs.map(([id, by]) => [id, seen(id), seen(by)]).filter(([, one, other]) => one && other)
      .map(([id, one, other]) => [id, number(one, 'x') - number(other, 'x'), number(one, 'y') - number(other, 'y')]),
  });
  const svg = root.querySelector('svg.tbt-scene');
  scrub.value = 0;
  scrub.dispatchEvent(new Event('input'));
  while (+root.dataset.step < +scrub.max) { step.click(); for (let i = 0; i < 24; i++) { look(); pass(16); } look(); }
  back.click();
  for (let i = 0; i < 24; i++) { look(); pass(16); }
  scrub.value = 0;
  scrub.dispatchEvent(new Event('input'));
  play.click();
  for (let i = 0; i < 2000 && +root.dataset.step < +scrub.max; i++) { pass(16); look(); }
  return frames;
}"""
