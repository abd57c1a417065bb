// Python and the judge, away from the page: whoever stops it takes another one. The page's policy holds here too.
const here = path => new URL(path, import.meta.url).href;

async function fetched(path) {
  const got = await fetch(here(path));
  if (!got.ok) throw new Error(`${path}: ${got.status}`);
  return got.arrayBuffer();
}

async function boot({ judge, folder }) {
  const lock = JSON.parse(new TextDecoder().decode(await fetched('../pyodide/pyodide-lock.json')));
  const [{ loadPyodide }, ...archives] = await Promise.all([
    import(here('../pyodide/pyodide.mjs')), fetched(`../pyodide/${lock.packages.numpy.file_name}`), fetched('judge.zip'),
    fetched('bytecode.zip'), fetched(`../${judge}`),
  ]);
  const core = await loadPyodide({ indexURL: here('../pyodide/') });
  for (const archive of archives) core.unpackArchive(archive, 'zip', { extractDir: '/judge' });
  core.runPython(`
import os, sys
sys.path.insert(0, '/judge')
os.environ['TILE_RECORDS'] = '/records'
os.makedirs('/judge/${folder}', exist_ok=True)
os.chdir('/judge/${folder}')
`);
  return core.pyimport('grader.site.inside').reply;
}

let ready = null;

onmessage = async ({ data: { id, request, start } }) => {
  if (start) {
    ready = boot(start);
    ready.then(() => postMessage({ state: 'live' }), problem => postMessage({ state: 'failed', why: String(problem) }));
    return;
  }
  try {
    const reply = await ready;
    postMessage({ id, answer: JSON.parse(reply(JSON.stringify(request), sentence => postMessage({ id, at: String(sentence) }))) });
  } catch (problem) {
    postMessage({ id, problem: String(problem) });
  }
};
