// What a learner wrote, kept in this browser (IndexedDB) under the lab's name, and packed into links.
const database = new Promise((resolve, reject) => {
  const opening = indexedDB.open('tile-by-tile', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('labs');
  opening.onsuccess = () => resolve(opening.result);
  opening.onerror = () => reject(opening.error);
});
database.catch(() => {}); // whoever reads or writes hears of it

const done = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// A request succeeds before its transaction does, which may yet fail where the disk is full.
const finished = under => new Promise((resolve, reject) => {
  under.oncomplete = () => resolve();
  under.onabort = under.onerror = () => reject(under.error);
});

// A transaction under way ends unfinished when its tab closes. localStorage takes each text at once and holds it until then.
const underWay = (...key) => ['tile-by-tile', ...key].join('/');

function note(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {} // full or refused: the database alone keeps it
}

function settled(key, value) {
  try {
    if (localStorage.getItem(key) === JSON.stringify(value)) localStorage.removeItem(key);
  } catch {}
}

function noted(lab) {
  try {
    const before = `${underWay(lab)}/`, keys = Object.keys(localStorage).filter(key => key.startsWith(before));
    return keys.map(key => [key.slice(before.length).split('/'), JSON.parse(localStorage.getItem(key))]);
  } catch {
    return [];
  }
}

// {cell: text} and {question: {points, of, open}}; each under a key of its own, so that two tabs disturb each other little.
export async function kept(lab) {
  const found = { text: {}, result: {} };
  try {
    const store = (await database).transaction('labs').objectStore('labs');
    const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
    keys.forEach((key, i) => {
      const [of, what, name] = [].concat(key);
      if (of === lab && what in found) found[what][name] = values[i];
    });
  } catch {} // whoever writes hears of it
  for (const [[what, ...name], value] of noted(lab)) if (what in found) found[what][name.join('/')] = value;
  return found;
}

const tabs = globalThis.BroadcastChannel ? new BroadcastChannel('tile-by-tile') : null;

export async function keep(lab, what, name, value) {
  const key = underWay(lab, what, name);
  note(key, value);
  tabs?.postMessage([lab, what, name, value]);
  const under = (await database).transaction('labs', 'readwrite');
  await Promise.all([done(under.objectStore('labs').put(value, [lab, what, name])), finished(under)]);
  settled(key, value);
}

// What other tabs of this browser keep for a lab.
export function heard(lab, callback) {
  if (tabs) tabs.onmessage = ({ data: [of, ...kept] }) => { if (of === lab) callback(...kept); };
}

async function through(bytes, stream) {
  const passed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(passed).arrayBuffer());
}

const MOST = 400_000; // characters of a text that a link may bring

export async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  return btoa(Array.from(bytes, one => String.fromCharCode(one)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export async function unpacked(words) {
  const bytes = Uint8Array.from(atob(words.replaceAll('-', '+').replaceAll('_', '/')), one => one.charCodeAt(0));
  const text = new TextDecoder().decode(await through(bytes, new DecompressionStream('deflate-raw')));
  if (text.length > MOST) throw new Error('too long');
  return text;
}
