// Messages: one each way a change, and the latest wins.

function courier(adapter, view, waiting) {
  let revision = 0, flying = 0, next = null, timer = 0;
  const go = () => {
    flying = ++revision;
    timer = setTimeout(() => waiting(true), WAIT_MS);
    const request = { view, revision, ...next };
    next = null;
    adapter.ask(request);
  };
  return {
    send(request) { next = request; if (!flying) go(); },
    // true when this answer leaves nothing newer on its way
    landed(answer) {
      if (answer.view !== view) return !flying;
      if (answer.revision !== flying) return false;
      clearTimeout(timer);
      waiting(false);
      flying = 0;
      if (next) { go(); return false; }
      return true;
    },
    // nothing will come back: what flies or waits is forgotten
    forget() { clearTimeout(timer); waiting(false); flying = 0; next = null; },
    stop() { clearTimeout(timer); },
    get busy() { return Boolean(flying); },
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
