// A lab's cells: edited here, kept in this browser, judged by Python in a worker. Nothing is sent anywhere.
import { editor, kind } from './lab-editor.js';
import { heard, keep, kept, packed, unpacked } from './lab-store.js';

const SAYS = {
  starting: 'Python starts inside this page. The first time takes a while.',
  live: 'Ready. The grader’s own judge runs inside this page, and nothing is sent anywhere.',
  failed: 'Python could not start inside this browser. Run and Check start it again. The lab runs in JupyterLab too.',
};
const CHANGED = 'You changed this cell while it ran. What follows is about the text before your change.';
const lab = JSON.parse(document.getElementById('lab').textContent);
const page = document.documentElement, status = document.querySelector('.lab-status');
const told = document.querySelector('.lab-told'), total = document.querySelector('.lab-total');
const sections = [...document.querySelectorAll('.lab-cell')];
const cells = new Map(sections.map(place => [place.dataset.cell, place]));
const editors = new Map(), results = {}, waiting = new Map();
let worker = null, last = 0, following = false;

function say(state, why = '') {
  page.dataset.judge = state;
  status.textContent = SAYS[state];
  status.title = why;
}

// From a blob the worker inherits the page's policy: no other origin can be reached from Python either.
function judge() {
  if (worker) return worker;
  say('starting');
  const whole = new URL('lab-worker.js', import.meta.url).href;
  const address = URL.createObjectURL(new Blob([`
    const early = []; onmessage = event => early.push(event);
    import(${JSON.stringify(whole)}).then(
      () => { for (const event of early) onmessage(event); },
      problem => postMessage({ state: 'failed', why: String(problem) }));
  `], { type: 'text/javascript' }));
  const own = worker = new Worker(address, { type: 'module' });
  own.onmessage = ({ data }) => {
    URL.revokeObjectURL(address);
    if (own !== worker) return;
    if (data.state === 'failed') return fail(data.why);
    if (data.state) return say(data.state, data.why);
    const one = waiting.get(data.id);
    if (data.at) return one?.at(data.at);
    waiting.delete(data.id);
    one?.resolve(data);
    if (data.problem) stop(); // a Python that ended answers nothing any more
  };
  own.onerror = problem => { if (own === worker) fail(problem.message); };
  own.postMessage({ start: { judge: lab.judge, folder: lab.folder } });
  return own;
}

// Python did not start, so the next request starts it again.
function fail(why) {
  end({ failed: true });
  say('failed', why);
}

function end(how) {
  worker?.terminate();
  worker = null;
  for (const one of waiting.values()) one.resolve(how);
  waiting.clear();
}

function ask(request, at) {
  const id = ++last;
  return new Promise(resolve => {
    waiting.set(id, { resolve, at });
    judge().postMessage({ id, request });
  });
}

function stop() {
  end({ stopped: true });
  judge();
}

async function write(what, name, value) {
  try {
    await keep(lab.name, what, name, value);
    page.dataset.kept = String(Number(page.dataset.kept ?? 0) + 1);
  } catch {
    told.textContent = 'This browser keeps nothing for this page. Save your work as a notebook before you leave.';
  }
}

function above(place) {
  const before = sections.slice(0, sections.indexOf(place)).filter(one => one.dataset.kind !== 'text');
  return before.map(one => [one.dataset.cell, editors.get(one.dataset.cell).text]);
}

async function ran(place, what) {
  const out = place.querySelector('.lab-out'), buttons = place.querySelectorAll('.run, .check'), stopper = place.querySelector('.stop');
  if (!stopper.hidden) return; // a key may ask while the cell runs
  const name = place.dataset.cell, source = editors.get(name).text, question = place.dataset.question;
  for (const button of buttons) button.setAttribute('aria-disabled', 'true'); // and the keyboard stays where it is
  stopper.hidden = false;
  out.textContent = page.dataset.judge === 'live' ? 'Python is at work …' : `${SAYS.starting} Then it runs this cell …`;
  const request = { what, cell: name, question, source, case: Number(place.querySelector('.case')?.value ?? 0), above: above(place) };
  const got = await ask(request, sentence => { out.textContent = `${sentence} …`; });
  if (got.stopped) out.textContent = 'Stopped. Python starts anew, and runs again what a cell needs of the cells above it.';
  else if (got.failed) out.textContent = SAYS.failed;
  else if (got.problem) out.textContent = `Python ended in this cell and starts anew. Its last words: ${got.problem}`;
  else out.innerHTML = got.answer.html; // what a cell prints is escaped, and the policy lets no script of it run
  if (got.answer && editors.get(name).text !== source) out.prepend(note(CHANGED));
  const line = out.querySelector('.tbt-listing [aria-current]');
  if (line) line.parentElement.scrollTop = line.offsetTop - line.parentElement.clientHeight / 2;
  out.dataset.verdict = got.answer?.verdict ?? '';
  out.dataset.seconds = got.answer?.seconds ?? '';
  out.dataset.failed = String(got.answer?.failed ?? false);
  if (document.activeElement === stopper) buttons[0].focus();
  stopper.hidden = true;
  for (const button of buttons) button.removeAttribute('aria-disabled');
  if (what === 'check' && got.answer) {
    const { points, of, open } = got.answer;
    results[question] = { points, of, open };
    count();
    await write('result', question, results[question]);
  }
}

function note(words) {
  const line = document.createElement('p');
  line.className = 'lab-note';
  line.textContent = words;
  return line;
}

function count() {
  const rows = Object.entries(results).filter(([question]) => question in lab.hints); // a new edition may ask others
  const sum = (key, some = rows) => Math.round(10 * some.reduce((all, [, row]) => all + row[key], 0)) / 10;
  if (!rows.length) return;
  const extra = sum('points', rows.filter(([question]) => lab.bonus.includes(question)));
  const bonus = extra ? `, ${extra} of them bonus` : '', open = sum('open') ? `, ${sum('open')} open` : '';
  total.textContent = `So far ${sum('points')} of ${lab.points} points in this lab${bonus}${open}. ` +
    (open ? 'Open points wait for Triton’s compiler: JupyterLab on Linux or the hand-in judges them.' : '');
}

function hint(place) {
  const hints = lab.hints[place.dataset.question], given = Number(place.dataset.hints ?? 0);
  if (given >= hints.length) return;
  const line = document.createElement('li');
  line.textContent = hints[given];
  place.querySelector('.lab-hints').append(line);
  place.dataset.hints = given + 1;
  place.querySelector('.hint').disabled = given + 1 === hints.length;
}

async function notebook() {
  const got = await fetch(lab.notebook), made = await got.json(); // another page than the notebook is no JSON
  for (const cell of made.cells) if (editors.has(cell.id)) cell.source = editors.get(cell.id).text;
  return new Blob([JSON.stringify(made, null, 1) + '\n'], { type: 'application/x-ipynb+json' });
}

async function save() {
  const link = document.createElement('a'), made = await notebook().catch(() => null);
  if (!made) {
    told.textContent = 'The server did not send the lab’s notebook, so nothing was saved. Your work stays in this browser. Try again later.';
    return;
  }
  link.href = URL.createObjectURL(made);
  link.download = lab.notebook.split('/').at(-1);
  link.click();
  URL.revokeObjectURL(link.href);
}

async function open(file) {
  let made = null;
  try { made = JSON.parse(await file.text()); } catch { /* said below */ }
  const held = Array.isArray(made?.cells) ? made.cells.filter(cell => cell?.id && cell.source !== undefined) : [];
  const ours = held.filter(cell => editors.has(cell.id) && !locked(cells.get(cell.id)));
  const mine = cell => cells.get(cell.id)?.dataset.kind === 'answer';
  const answers = held.filter(cell => mine(cell) || (cell.cell_type === 'code' && cell.metadata?.nbgrader?.solution));
  if (2 * answers.filter(mine).length <= answers.length) { // labs share names of a few cells
    told.textContent = `${file.name} must be the notebook of this lab, got ${made ? 'another one' : 'a file that is no notebook'}; nothing was changed.`;
    return;
  }
  for (const cell of ours) editors.get(cell.id).text = [].concat(cell.source).join('');
  told.textContent = `${ours.length} cells are now as in ${file.name}. Undo in a cell brings its old text back.`;
}

// A link holds a cell's text behind the #, which no browser sends to a server.
async function link(place) {
  const name = place.dataset.cell, button = place.querySelector('.link');
  const own = new URL(location.href);
  own.hash = `cell=${name}&text=${await packed(editors.get(name).text)}`;
  try {
    await navigator.clipboard.writeText(own.href);
    button.textContent = 'Link copied';
  } catch {
    history.replaceState(null, '', own.href);
    button.textContent = 'The address bar has the link';
  }
}

function offer(place, text) {
  const box = document.createElement('div'), shown = document.createElement('pre'), name = place.dataset.cell;
  box.className = 'lab-offer';
  box.setAttribute('role', 'status');
  box.append('The link that you opened brings another text for this cell. Read it before you run it.');
  shown.textContent = text;
  const doors = document.createElement('div');
  doors.className = 'doors';
  for (const [words, does] of [['Use the link’s text', () => { editors.get(name).text = text; }], ['Keep mine', () => {}]]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = words;
    button.addEventListener('click', () => {
      does();
      box.remove();
      history.replaceState(null, '', location.pathname);
      editors.get(name).focus();
    });
    doors.append(button);
  }
  box.append(shown, doors);
  place.querySelector('.lab-offer')?.remove();
  place.prepend(box);
  place.scrollIntoView(); // which begins with the offer now
}

async function followed() {
  const asked = new URLSearchParams(location.hash.slice(1)), place = cells.get(asked.get('cell'));
  if (!place) return;
  place.scrollIntoView();
  if (!asked.get('text') || locked(place)) return;
  try {
    const text = await unpacked(asked.get('text'));
    if (text !== editors.get(place.dataset.cell).text) offer(place, text);
  } catch {
    told.textContent = 'The link that you opened is damaged: its text could not be read. Ask for it again.';
  }
}

const locked = place => Boolean(place.querySelector('details.imports'));

function wired(place, before) {
  const name = place.dataset.cell, area = place.querySelector('textarea'), type = place.dataset.kind;
  if (before.text[name] !== undefined && !locked(place)) area.value = before.text[name];
  const run = type === 'text' ? null : () => { ran(place, type === 'answer' ? 'case' : 'cell'); return true; };
  const changed = () => { if (!following) write('text', name, editors.get(name).text); };
  editors.set(name, editor(area, { python: type !== 'text', locked: locked(place), changed, run }));
  const click = (button, does) => place.querySelector(button)?.addEventListener('click', does);
  click('.run', run);
  click('.check', () => ran(place, 'check'));
  click('.stop', stop);
  click('.hint', () => hint(place));
  click('.link', () => link(place));
  click('.solution', () => { editors.get(name).text = lab.solutions[name]; });
}

// The same lab in another tab of this browser: both show the last word, so that neither writes over it.
function follow(what, name, value) {
  if (what === 'result') {
    results[name] = value;
    count();
  } else if (editors.has(name) && editors.get(name).text !== value) {
    following = true;
    editors.get(name).text = value;
    following = false;
  }
}

const before = await kept(lab.name);
judge();
for (const place of sections) wired(place, before);
Object.assign(results, before.result);
count();
heard(lab.name, follow);
document.querySelector('.lab-save').addEventListener('click', save);
document.querySelector('.lab-open').addEventListener('change', event => {
  if (event.target.files[0]) open(event.target.files[0]);
  event.target.value = '';
});
addEventListener('hashchange', followed);
globalThis.tileLab = { editors, ask, packed }; // for tests and for the curious
page.dataset.editor = kind;
page.dataset.lab = 'ready';
followed();
