// Steps known before their key comes: pictures by the values they show, and where the next key may lead.

const PICTURES = 16, AHEAD_MS = 40;
const WAYS = [1, -1, 2, -2];

// What has the focus -> what so many steps on it would set: way => [name, value], or null where it ends.
const leads = new WeakMap();

function stepped(input, way) {
  const probe = input.cloneNode();
  if (way > 0) probe.stepUp(way); else probe.stepDown(-way);
  return probe;
}

function album(spec) {
  const kept = new Map();
  // `axes`: the state whose axes it has, while a hand holds something
  const key = (values, narrow, axes = null) => JSON.stringify([narrow, axes, ...spec.controls.map(control => values[control.name])]);
  function keep(at, answer) {
    kept.delete(at);
    kept.set(at, answer);
    if (kept.size > PICTURES) kept.delete(kept.keys().next().value);
  }
  return {
    key,
    keep,
    find(at) {
      const found = kept.get(at);
      if (found) keep(at, found);
      return found;
    },
    // The first likely step from here that is not known: its key and its values.
    unknown(values, narrow) {
      const lead = leads.get(document.activeElement), here = key(values, narrow);
      const steps = lead ? WAYS.map(lead).filter(Boolean).map(([name, value]) => ({ ...values, [name]: value })) : [];
      return steps.map(next => ({ key: key(next, narrow), values: next })).find(next => next.key !== here && !kept.has(next.key));
    },
  };
}
