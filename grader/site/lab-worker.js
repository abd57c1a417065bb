// Python and the judge, away from the page: whoever stops it takes another one.
const here = path => new URL(path, import.meta.url).href;

async function fetched(path) {
  const got = await fetch(here(path));
  if (!got.ok) throw new Error(`${path}: ${got.status}`);
  return got.arrayBuffer();
}

async function boot() {
  const lock = JSON.parse(new TextDecoder().decode(await fetched('../pyodide/pyodide-lock.json')));
  const [{ loadPyodide }, numpy, judge] = await Promise.all([
    import(here('../pyodide/pyodide.mjs')), fetched(`../pyodide/${lock.packages.numpy.file_name}`), fetched('judge.zip'),
  ]);
  const core = await loadPyodide({ indexURL: here('../pyodide/') });
  for (const archive of [numpy, judge]) core.unpackArchive(archive, 'zip', { extractDir: '/judge' });
  core.runPython("import sys; sys.path.insert(0, '/judge')");
  const { reply } = core.pyimport('grader.site.inside');
  return reply;
}

const ready = boot();
ready.then(() => postMessage({ state: 'live' }), problem => postMessage({ state: 'failed', why: String(problem) }));

onmessage = async ({ data: { id, request } }) => {
  try {
    const reply = await ready;
    postMessage({ id, answer: JSON.parse(reply(JSON.stringify(request))) });
  } catch (problem) {
    postMessage({ id, problem: String(problem) });
  }
};
