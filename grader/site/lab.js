// A lab's cells: edited here, kept in this browser, judged by Python in a worker. Nothing is sent anywhere.
const SAYS = {
  starting: 'Python starts inside this page. The first time takes a while.',
  live: 'Ready. The grader’s own judge runs inside this page, and nothing is sent anywhere.',
  failed: 'Python could not start inside this browser. The lab runs in JupyterLab.',
  stopped: 'Stopped. Python starts again with the next run.',
};
const lab = JSON.parse(document.getElementById('lab').textContent);
const status = document.querySelector('.lab-status');
const cells = new Map([...document.querySelectorAll('.lab-cell')].map(place => [place.dataset.cell, place]));
const waiting = new Map();
let worker = null, last = 0;

function say(state, why = '') {
  document.documentElement.dataset.judge = state;
  status.textContent = SAYS[state];
  status.title = why;
}

function judge() {
  if (worker) return worker;
  say('starting');
  worker = new Worker(new URL('lab-worker.js', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }) => {
    if (data.state) return say(data.state, data.why);
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  worker.onerror = problem => say('failed', problem.message);
  return worker;
}

function ask(request) {
  const id = ++last;
  return new Promise(resolve => {
    waiting.set(id, resolve);
    judge().postMessage({ id, request });
  });
}

function stop() {
  worker?.terminate();
  worker = null;
  for (const [id, resolve] of waiting) resolve({ id, stopped: true });
  waiting.clear();
  say('stopped');
}

// What was written is kept under the lab's name, each cell by its id.
const database = new Promise((resolve, reject) => {
  const opening = indexedDB.open('tile-by-tile', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('labs');
  opening.onsuccess = () => resolve(opening.result);
  opening.onerror = () => reject(opening.error);
});

async function kept() {
  const store = (await database).transaction('labs').objectStore('labs').get(lab.name);
  return new Promise((resolve, reject) => {
    store.onsuccess = () => resolve(store.result ?? {});
    store.onerror = () => reject(store.error);
  });
}

async function keep() {
  const sources = Object.fromEntries([...cells].map(([id, place]) => [id, place.querySelector('textarea').value]));
  const writing = (await database).transaction('labs', 'readwrite');
  writing.objectStore('labs').put(sources, lab.name);
  await new Promise((resolve, reject) => { writing.oncomplete = resolve; writing.onerror = () => reject(writing.error); });
  document.documentElement.dataset.kept = String(Number(document.documentElement.dataset.kept ?? 0) + 1);
}

function fit(area) {
  area.rows = Math.max(4, area.value.split('\n').length + 1);
}

async function ran(place, what) {
  const out = place.querySelector('.lab-out'), buttons = place.querySelectorAll('button:not(.stop)');
  for (const button of buttons) button.disabled = true;
  place.querySelector('.stop').hidden = false;
  out.textContent = 'Python is at work …';
  const got = await ask({ what, question: place.dataset.question, source: place.querySelector('textarea').value });
  if (got.stopped) out.textContent = 'Stopped.';
  else if (got.problem) out.textContent = `This is the page’s own trouble: ${got.problem}`;
  else out.innerHTML = got.answer.html; // escaped by the judge, as in a notebook
  out.dataset.verdict = got.answer?.verdict ?? '';
  out.dataset.seconds = got.answer?.seconds ?? '';
  place.querySelector('.stop').hidden = true;
  for (const button of buttons) button.disabled = false;
}

function hint(place) {
  const hints = lab.hints[place.dataset.question], given = Number(place.dataset.hints ?? 0);
  const out = place.querySelector('.lab-hints'), line = document.createElement('li');
  if (given >= hints.length) return;
  line.textContent = hints[given];
  out.append(line);
  place.dataset.hints = given + 1;
  place.querySelector('.hint').disabled = given + 1 === hints.length;
}

async function notebook() {
  const got = await fetch(lab.notebook), made = await got.json(), sources = await kept();
  for (const cell of made.cells) if (sources[cell.id] !== undefined) cell.source = sources[cell.id];
  return new Blob([JSON.stringify(made, null, 1) + '\n'], { type: 'application/x-ipynb+json' });
}

async function save() {
  await keep();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await notebook());
  link.download = lab.notebook.split('/').at(-1);
  link.click();
  URL.revokeObjectURL(link.href);
}

async function open(file) {
  const made = JSON.parse(await file.text());
  for (const cell of made.cells ?? []) {
    const area = cells.get(cell.id)?.querySelector('textarea');
    if (!area) continue;
    area.value = [].concat(cell.source).join('');
    fit(area);
  }
  await keep();
}

function indent(event) {
  if (event.key !== 'Tab' || event.shiftKey || event.altKey || event.ctrlKey) return;
  if (event.currentTarget.dataset.leave) return;
  event.preventDefault();
  event.currentTarget.setRangeText('    ', event.currentTarget.selectionStart, event.currentTarget.selectionEnd, 'end');
}

const before = await kept();
for (const [id, place] of cells) {
  const area = place.querySelector('textarea');
  if (before[id] !== undefined) area.value = before[id];
  fit(area);
  area.addEventListener('input', () => { fit(area); keep(); });
  area.addEventListener('keydown', event => {
    if (event.key === 'Escape') area.dataset.leave = 'yes'; // then Tab leads on, for who has no mouse
    else if (event.key !== 'Tab') delete area.dataset.leave;
    indent(event);
  });
  place.querySelector('.run').addEventListener('click', () => ran(place, 'run'));
  place.querySelector('.check').addEventListener('click', () => ran(place, 'check'));
  place.querySelector('.stop').addEventListener('click', stop);
  place.querySelector('.hint').addEventListener('click', () => hint(place));
}
document.querySelector('.lab-save').addEventListener('click', save);
document.querySelector('.lab-open').addEventListener('change', event => open(event.target.files[0]));
document.documentElement.dataset.lab = 'ready';
judge();
