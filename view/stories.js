// Story steps: a link of the text, [make it one row](#set/tile_walk?m=1&step=2), sets the simulator nearest to it.
// `reset` puts what is not named back to the start. One listener a page serves every simulator on it.

const STORY = '#set/';

// "m=1&dtype=fp8" -> values of the right kind; what does not fit stays as written, and Python says what is right.
function storyValues(spec, query) {
  const given = new URLSearchParams(query), values = {};
  const kinds = Object.fromEntries(spec.controls.map(control => [control.name, control]));
  for (const [name, text] of given) {
    if (name === 'reset' || name === 'step') continue;
    const control = kinds[name];
    if (control?.kind === 'toggle') values[name] = text === 'true' ? true : text === 'false' ? false : text;
    else if (control?.kind === 'select') values[name] = control.stops.find(stop => String(stop) === text) ?? text;
    else values[name] = text !== '' && Number.isFinite(+text) ? +text : text;
  }
  return { values: given.has('reset') ? { ...spec.start, ...values } : values, step: given.has('step') ? +given.get('step') : null };
}

// The other way: what differs from the start, and the step where it is not the one that these values open at.
function storyQuery(spec, values, step) {
  const changed = Object.keys(values).filter(name => values[name] !== spec.start[name]).map(name => [name, values[name]]);
  return new URLSearchParams(step === null ? changed : [...changed, ['step', step]]).toString();
}

function far(node, link) {
  const one = node.getBoundingClientRect(), other = link.getBoundingClientRect();
  return Math.max(0, one.top - other.bottom, other.top - one.bottom);
}

function told(link, text) {
  let note = link.nextElementSibling?.matches('.tbt-note') ? link.nextElementSibling : null;
  if (!text) return note?.remove();
  if (!note) link.after((note = make('span', { class: 'tbt-note', role: 'status' })));
  note.textContent = ` (${text})`;
}

function follow(event) {
  const link = event.target.closest?.(`a[href*="${STORY}"]`);
  if (!link) return;
  event.preventDefault();
  event.stopPropagation();
  const [name, query = ''] = link.getAttribute('href').split(STORY)[1].split('?');
  const shown = [...document.querySelectorAll('.tbt[data-simulator]')]
    .filter(root => root.dataset.simulator === name || root.dataset.simulator.endsWith(`.${name}`))
    .filter(root => root.offsetParent)
    .sort((one, other) => far(one, link) - far(other, link))[0];
  told(link, shown ? '' : `the simulator is not open: run the cell with show("${name}") first`);
  shown?.dispatchEvent(new CustomEvent('tbt-set', { detail: query }));
}

function serveStories() {
  const once = Symbol.for('tbt.stories');
  if (document[once]) return;
  document[once] = true;
  document.addEventListener('click', follow, { capture: true });
}
