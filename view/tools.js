// What every part of the view uses.

const SVG = 'http://www.w3.org/2000/svg';
const GAP = '\u202f';
const WAIT_MS = 1000, ANNOUNCE_MS = 400, GLIDE_MS = 160;
const stillness = matchMedia('(prefers-reduced-motion: reduce)');

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
  if (node.textContent === text) return;
  if (node.childNodes.length === 1 && node.firstChild.nodeType === Node.TEXT_NODE) node.firstChild.data = text;
  else node.textContent = text;
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
