// A mark that was picked says where it came from: its `pick` is a list of [line, words], itself first.

function picks(svg, walk, choose) {
  const title = make('p', { class: 'tbt-picked-name' }), from = make('ol', { class: 'tbt-origins' });
  const node = make('div', { class: 'tbt-picked', role: 'status', hidden: true }, title, from);
  let picked = '', marks = new Map();

  function tell(mark) {
    const [head, ...rest] = mark.pick;
    say(title, head[1]);
    list(from, rest, () => make('li', {}, button('', event => choose(+event.currentTarget.dataset.line)), make('span')), ({ children: [lead, words] }, [line, text]) => {
      put(lead, { 'data-line': line || 0 });
      lead.disabled = !line;
      say(lead, line ? `line ${line}` : 'argument');
      say(words, text);
    });
    node.hidden = false;
  }
  function outline() {
    for (const one of svg.querySelectorAll('.picked')) one.classList.remove('picked');
    if (picked) svg.querySelector(`[data-id="${CSS.escape(picked)}"]`)?.classList.add('picked');
  }
  function pick(mark) {
    if (!mark?.pick) return;
    picked = mark.id;
    tell(mark);
    outline();
  }
  svg.addEventListener('click', event => {
    const id = event.target.closest('[data-id]')?.dataset.id;
    pick(marks.get(id) ?? null);
  });
  walk.addEventListener('keydown', event => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    pick([...marks.values()].filter(mark => mark.tip)[+walk.value]);
  });
  return {
    node,
    // The same lane stays picked from step to step, as long as there is one of its place.
    show(frame) {
      marks = frame.marks;
      const mark = marks.get(picked);
      if (mark?.pick) tell(mark); else { picked = ''; node.hidden = true; }
      outline();
    },
  };
}
