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

// {cell: text} and {question: {points, of, open}}; each under a key of its own, so that two tabs disturb each other little.
export async function kept(lab) {
  const store = (await database).transaction('labs').objectStore('labs');
  const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
  const found = { text: {}, result: {} };
  keys.forEach((key, i) => {
    const [of, what, name] = [].concat(key);
    if (of === lab && what in found) found[what][name] = values[i];
  });
  return found;
}

export async function keep(lab, what, name, value) {
  await done((await database).transaction('labs', 'readwrite').objectStore('labs').put(value, [lab, what, name]));
}

async function through(bytes, stream) {
  const passed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(passed).arrayBuffer());
}

const MOST = 400_000; // characters of a text that a link may bring

export async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export async function unpacked(words) {
  const bytes = Uint8Array.from(atob(words.replaceAll('-', '+').replaceAll('_', '/')), one => one.charCodeAt(0));
  const text = new TextDecoder().decode(await through(bytes, new DecompressionStream('deflate-raw')));
  if (text.length > MOST) throw new Error('too long');
  return text;
}
