// Messages: one each way a change, and the latest wins. What is on show already is only told to Python, after its frame.

const TELL_MS = 20;

// `ahead()`: a step to think of, where one is wanted; `held()`: a hand is at work, and nothing else may take its time.
function courier(adapter, view, waiting, ahead, held) {
  let revision = 0, turn = 0, flying = null, next = null, timer = 0, pause = 0, thinking = false;
  const late = on => {
    clearTimeout(timer);
    if (on) timer = setTimeout(() => waiting(true), WAIT_MS); else waiting(false);
  };
  const step = () => {
    const wanted = adapter.ahead && !held() && ahead();
    thinking = Boolean(wanted);
    return wanted ? { ahead: { turn: ++turn, ...wanted } } : null;
  };
  const go = () => {
    clearTimeout(pause);
    flying = { ...next, revision: next.revision ?? ++revision };
    next = null;
    thinking = false;
    if (!flying.shown) late(true);
    adapter.ask({ view, revision: flying.revision, ...flying.request, ...(flying.shown && step()) });
  };
  const soon = () => { clearTimeout(pause); pause = setTimeout(() => (held() ? soon() : go()), TELL_MS); };
  return {
    // its picture is wanted
    send(request, key) {
      next = { request, key };
      if (!flying) go(); else if (flying.shown) late(true);
    },
    // its picture is on show: what still flies comes too late to be drawn
    tell(request, key) {
      late(false);
      if (flying) flying.shown = true;
      revision += 1;
      next = adapter.ahead ? { request, key, shown: true, revision } : null;
      if (next && !flying) soon();
      return revision;
    },
    // only to think of a step, while nothing else is to do
    think(request) {
      const more = !flying && !next && !thinking && step();
      if (more) adapter.ask({ view, guess: request.guess, narrow: request.narrow, ...more });
    },
    thought() { thinking = false; },
    // Whether to draw this answer, under which key to keep it, and whether it leaves nothing newer on its way.
    landed(answer) {
      if (answer.view !== view) return { draw: !flying?.shown && !next?.shown, settled: !flying && !next };
      if (answer.revision !== flying?.revision) return { draw: false, settled: false };
      const { key, shown } = flying, settled = !next;
      late(false);
      flying = null;
      if (next) { if (next.shown && held()) soon(); else go(); }
      return { draw: !shown, settled, key };
    },
    // nothing will come back: what flies or waits is forgotten
    forget() { clearTimeout(pause); late(false); flying = null; next = null; thinking = false; },
    stop() { clearTimeout(timer); clearTimeout(pause); },
  };
}

// The marks that came, which stand last, each to its place.
function placed(marks, into) {
  const came = marks.splice(marks.length - into.length);
  into.forEach((place, i) => marks.splice(place, 0, came[i]));
  return new Map(marks);
}

// Steps arrive as differences: the first whole, then what each changes.
function expand(frames) {
  let before = { marks: new Map() };
  return frames.map(frame => {
    let marks = new Map(before.marks);
    for (const id of frame.gone) marks.delete(id);
    for (const mark of frame.marks) marks.set(mark.id, { ...marks.get(mark.id), ...mark });
    if (frame.into) marks = placed([...marks], frame.into);
    if (frame.order) marks = new Map(frame.order.map(id => [id, marks.get(id)]));
    return (before = { ...before, ...frame, marks });
  });
}
