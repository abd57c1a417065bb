// Runs Python in Node.js as a page runs it: node compile.mjs PYODIDE ROOM. What it does there says compile_inside.py.
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [pyodide, room] = process.argv.slice(2).map(one => resolve(one));
const { loadPyodide } = await import(pathToFileURL(join(pyodide, 'pyodide.mjs')).href);
const core = await loadPyodide({ indexURL: `${pyodide}/` });
core.FS.mkdirTree('/room');
core.mountNodeFS('/room', room);
core.runPython(readFileSync(join(dirname(fileURLToPath(import.meta.url)), 'compile_inside.py'), 'utf8'));
