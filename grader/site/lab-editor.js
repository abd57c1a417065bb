// An editor for a cell: CodeMirror where the site has it, else the textarea that the page came with.
const UNIT = '    ';

async function codemirror() {
  const own = name => import(new URL(`codemirror/${name}.js`, import.meta.url).href);
  const names = ['codemirror-view', 'codemirror-state', 'codemirror-language', 'codemirror-commands', 'codemirror-lang-python', 'lezer-highlight'];
  return Object.assign({}, ...await Promise.all(names.map(own)));
}

const cm = await codemirror().catch(() => null);

export const kind = cm ? 'codemirror' : 'textarea';

function extensions(label, { python, changed, run }) {
  const keys = run ? [{ key: 'Shift-Enter', run }, { key: 'Mod-Enter', run }] : [];
  const text = [
    cm.keymap.of([...keys, ...cm.defaultKeymap, ...cm.historyKeymap, ...(python ? [cm.indentWithTab] : [])]),
    cm.history(),
    cm.EditorView.contentAttributes.of({ 'aria-label': label }),
    cm.EditorView.updateListener.of(update => { if (update.docChanged) changed(); }),
    cm.syntaxHighlighting(cm.classHighlighter),
  ];
  if (!python) return [...text, cm.EditorView.lineWrapping];
  return [...text, cm.python(), cm.indentUnit.of(UNIT), cm.indentOnInput(), cm.bracketMatching(), cm.lineNumbers()];
}

function rich(area, { locked, ...options }) {
  const more = extensions(area.getAttribute('aria-label'), options);
  if (locked) more.push(cm.EditorState.readOnly.of(true));
  const view = new cm.EditorView({ doc: area.value, extensions: more });
  area.after(view.dom);
  area.remove();
  return {
    get text() { return view.state.doc.toString(); },
    set text(value) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } }); },
    focus: () => view.focus(),
  };
}

function plain(area, { locked, python, changed, run }) {
  const fit = () => { area.rows = Math.max(3, area.value.split('\n').length + 1); };
  area.readOnly = Boolean(locked);
  area.addEventListener('input', () => { fit(); changed(); });
  area.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.shiftKey || event.ctrlKey || event.metaKey) && run) {
      event.preventDefault();
      run();
    } else if (event.key === 'Escape') area.dataset.leave = 'yes'; // then Tab leads on, for those without a mouse
    else if (event.key !== 'Tab') delete area.dataset.leave;
    else if (python && !area.dataset.leave && !event.shiftKey && !event.altKey && !event.ctrlKey) {
      event.preventDefault();
      area.setRangeText(UNIT, area.selectionStart, area.selectionEnd, 'end');
      area.dispatchEvent(new Event('input'));
    }
  });
  fit();
  return {
    get text() { return area.value; },
    set text(value) { area.value = value; fit(); changed(); },
    focus: () => area.focus(),
  };
}

export const editor = (area, options) => (cm ? rich : plain)(area, options);
