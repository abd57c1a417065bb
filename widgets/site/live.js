// Wakes the still pictures of a page: the view is scene.js, and Python inside this page answers it.
import { mount } from './scene.js';

const here = path => new URL(path, import.meta.url).href;
const SAYS = {
  touch: 'The course’s own Python (13 MB) starts inside this page when you touch the simulator.',
  starting: 'Python starts inside this page. The controls already listen; the picture follows in a moment.',
  live: 'Live: the course’s own Python model answers, inside this page. Nothing is sent anywhere.',
  failed: 'Python could not start inside this browser, so this stays a still picture.',
};
const places = [...document.querySelectorAll('.simulator')];
const stops = [];
let python = null;

function say(state, why = '') {
  document.documentElement.dataset.python = state;
  for (const place of places) {
    const line = place.querySelector('.status');
    line.textContent = SAYS[state];
    line.title = why;
  }
}

async function fetched(path) {
  const got = await fetch(here(path));
  if (!got.ok) throw new Error(`${path}: ${got.status}`);
  return got.arrayBuffer();
}

// Pyodide waits for ever for WebAssembly that does not come, so whether it can is asked first.
async function reachable(path) {
  if (typeof WebAssembly === 'undefined') throw new Error('no WebAssembly');
  const got = await fetch(here(path), { method: 'HEAD' });
  if (got.status === 404) throw new Error(`${path}: 404`);
}

async function boot() {
  say('starting');
  await reachable('../pyodide/pyodide.asm.wasm');
  const [{ loadPyodide }, models] = await Promise.all([import(here('../pyodide/pyodide.mjs')), fetched('models.zip')]);
  const core = await loadPyodide({ indexURL: here('../pyodide/') });
  core.unpackArchive(models, 'zip', { extractDir: '/models' });
  core.runPython("import sys; sys.path.insert(0, '/models')");
  const { reply } = core.pyimport('widgets.site.inside');
  say('live');
  return reply;
}

function giveUp(problem) {
  console.error(problem);
  for (const stop of stops.splice(0)) stop();
  say('failed', String(problem));
}

function start() {
  python ??= boot();
  return python;
}

// The state of a simulator is in the address of its own page, as a sentence of a lesson would set it.
const OWN = document.body.matches('.on-simulator'), KEEP_MS = 300;
let keeping = 0;

function address(name, query) {
  const own = new URL(OWN ? location.href : `../simulators/${name}.html`, location.href);
  own.hash = query ? `set/${name}?${query}` : '';
  return own.href;
}

function keep(name, query) {
  clearTimeout(keeping);
  keeping = setTimeout(() => { if (address(name, query) !== location.href) history.replaceState(null, '', address(name, query)); }, KEEP_MS);
}

function open(host) {
  const [, query] = /^#set\/\w+\?(.+)/.exec(location.hash) ?? [];
  if (query) host.querySelector('.tbt').dispatchEvent(new CustomEvent('tbt-set', { detail: `reset&${query}` }));
}

function wake(place) {
  const still = place.querySelector('.still'), host = document.createElement('div'), heard = new Set();
  const { name, given, spec, answer } = JSON.parse(place.querySelector('script').textContent), short = name.split('.').at(-1);
  let woken = false;
  still.before(host);
  const unmount = mount(host, {
    spec,
    answer,
    waiting: 'Waiting for Python, which is still starting.',
    ask: request => start().then(reply => {
      const got = JSON.parse(reply(name, JSON.stringify(request), JSON.stringify(given)));
      for (const callback of heard) callback(got);
    }).catch(giveUp),
    listen: callback => { heard.add(callback); return () => heard.delete(callback); },
    moved: query => { if (OWN && woken) keep(short, query); },
    link: query => address(short, query),
  });
  woken = true;
  if (OWN) { open(host); addEventListener('hashchange', () => open(host)); }
  still.hidden = true;
  stops.push(() => { unmount(); host.remove(); still.hidden = false; });
}

function asked(place) {
  const button = document.createElement('button');
  button.className = 'tool';
  button.textContent = 'Play with it';
  button.addEventListener('click', () => { button.remove(); wake(place); }, { once: true });
  place.prepend(button);
}

// Python is 13 MB: it is fetched when the first simulator comes near, and on the home page, where it is near at once,
// when a hand comes to it. Somebody who only reads fetches none.
const COVER = document.body.matches('.on-cover');
const near = new IntersectionObserver(seen => {
  if (!seen.some(one => one.isIntersecting)) return;
  near.disconnect();
  start().catch(giveUp);
}, { rootMargin: '600px' });

for (const place of places) {
  if (COVER && place.clientWidth < 708) { asked(place); continue; }  // scene.js would ask Python for the narrow layout at once
  wake(place);
  if (!COVER) { near.observe(place); continue; }
  const begin = () => start().catch(giveUp);
  for (const sign of ['pointerdown', 'focusin']) place.addEventListener(sign, begin, { once: true });
}
if (COVER) say('touch');
