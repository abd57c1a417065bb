// Native controls, each named, from what Python declared.

const decimals = step => (String(step).split('.')[1] || '').length;

function withUnit(control, value) {
  const text = value.toLocaleString('en-US', { minimumFractionDigits: decimals(control.step), maximumFractionDigits: 6 });
  return text + (['', '%', '×'].includes(control.unit) ? '' : GAP) + control.unit;
}

const nearest = (stops, value) =>
  stops.reduce((best, stop, i) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best), 0);

// A value as its slider says it; one between the stops keeps its own digits.
function wordsOf(control, value) {
  if (!control.stops.length) return withUnit(control, value);
  const at = control.stops.indexOf(value);
  return at < 0 ? withUnit({ ...control, step: 1 }, value) : control.texts[at];
}

function sliderControl(control, id, changed) {
  const stops = control.stops;
  const range = stops.length ? { min: 0, max: stops.length - 1, step: 1 } : control;
  const input = make('input', { type: 'range', id, min: range.min, max: range.max, step: range.step, ...KEYS });
  const shown = make('span', { class: 'tbt-value', 'aria-hidden': 'true' });
  const name = text => { say(shown, text); put(input, { 'aria-valuetext': text }); };
  const read = (from = input) => (stops.length ? stops[+from.value] : +from.value);
  input.addEventListener('input', () => { name(wordsOf(control, read())); changed(control.name, read()); });
  leads.set(input, way => [control.name, read(stepped(input, way))]);
  return {
    input,
    parts: [make('label', { for: id }, control.label), shown, input],
    show(value) {
      input.value = stops.length ? nearest(stops, value) : value;
      name(wordsOf(control, value));
    },
  };
}

function numberControl(control, id, changed) {
  const { min, max, step } = control;
  const input = make('input', { type: 'number', id, min, max, step, inputmode: 'decimal', ...KEYS });
  input.addEventListener('input', () => changed(control.name, input.value === '' ? null : input.valueAsNumber));
  leads.set(input, way => [control.name, stepped(input, way).valueAsNumber]);
  const label = make('label', { for: id }, control.label + (control.unit ? ` (${control.unit})` : ''));
  return { input, parts: [label, input], show(value) { if (document.activeElement !== input) input.value = value; } };
}

function selectControl(control, id, changed) {
  const options = control.texts.map((text, i) => make('option', { value: i }, text));
  const input = make('select', { id, ...KEYS }, ...options);
  input.addEventListener('change', () => changed(control.name, control.stops[+input.value]));
  leads.set(input, way => (+input.value + way in control.stops ? [control.name, control.stops[+input.value + way]] : null));
  const label = make('label', { for: id }, control.label);
  return { input, parts: [label, input], show(value) { input.value = control.stops.indexOf(value); } };
}

function radioControl(control, id, changed) {
  const inputs = control.stops.map((stop, i) =>
    make('input', { type: 'radio', name: id, id: `${id}-${i}`, ...KEYS, onchange: () => changed(control.name, stop) }));
  const at = i => control.stops.at(i % control.stops.length);  // the arrow keys of radio buttons go round
  inputs.forEach((input, i) => leads.set(input, way => [control.name, at(i + way)]));
  const labels = inputs.map((input, i) => make('label', {}, input, control.texts[i]));
  const legend = make('span', { class: 'tbt-legend', id }, control.label);
  const group = make('div', { class: 'tbt-choices', role: 'radiogroup', 'aria-labelledby': id }, ...labels);
  return {
    input: group,
    parts: [legend, group],
    show(value) { inputs.forEach((input, i) => { input.checked = control.stops[i] === value; }); },
    rest(off) { inputs.forEach(input => { input.disabled = off; }); },
  };
}

function toggleControl(control, id, changed) {
  const input = make('input', { type: 'checkbox', id, ...KEYS });
  input.addEventListener('change', () => changed(control.name, input.checked));
  leads.set(input, () => [control.name, !input.checked]);
  return { input, parts: [make('label', { for: id }, control.label), input], show(value) { input.checked = value; } };
}

function controlFor(control, id, changed) {
  const short = control.stops.length <= 4 && control.texts.join('').length <= 36;
  const kinds = { slider: sliderControl, number: numberControl, toggle: toggleControl, select: short ? radioControl : selectControl };
  const made = kinds[control.kind](control, id, changed);
  const help = control.help ? make('span', { class: 'tbt-help', id: `${id}-help` }, control.help) : null;
  if (help) made.input.setAttribute('aria-describedby', help.id);
  return { ...made, control, node: make('div', { class: 'tbt-control', 'data-term': control.name }, ...made.parts, help) };
}

function controlPanel(spec, uid, changed) {
  const all = spec.controls.map(control => controlFor(control, `${uid}-${control.name}`, changed));
  const open = make('div', { class: 'tbt-controls' }), folded = make('div', { class: 'tbt-controls' });
  const more = make('details', { class: 'tbt-more' }, make('summary', KEYS, 'More settings'), folded);
  const inView = all.filter(one => !one.control.more);
  return {
    nodes: [open, more],
    // Where there is no room for all, the first few stay in view and the rest is folded.
    keep(few) {
      const stays = one => !one.control.more && inView.indexOf(one) < few;
      const places = [[open, all.filter(stays)], [folded, all.filter(one => !stays(one))]];
      more.hidden = !places[1][1].length;
      if (places.every(([place, ones]) => ones.length === place.children.length && ones.every((one, i) => one.node === place.children[i]))) return;
      const held = all.find(one => one.node.contains(document.activeElement)) && document.activeElement;
      for (const [place, ones] of places) place.append(...ones.map(one => one.node));
      // What is moved loses the focus: whoever has just come to a control by Tab keeps it.
      if (held && folded.contains(held)) more.open = true;
      held?.focus({ preventScroll: true });
    },
    of: name => all.find(one => one.control.name === name),
    // For a handle in the picture: the value goes the same way as from the slider.
    set(name, value) { all.find(one => one.control.name === name)?.show(value); changed(name, value); },
    show(values) { for (const one of all) if (one.control.name in values) one.show(values[one.control.name]); },
    rest(off) { for (const one of all) one.rest ? one.rest(off) : (one.input.disabled = off); },
    blame(name, errorId) {
      for (const { control, input } of all) {
        const guilty = control.name === name;
        guilty ? input.setAttribute('aria-invalid', 'true') : input.removeAttribute('aria-invalid');
        guilty ? input.setAttribute('aria-errormessage', errorId) : input.removeAttribute('aria-errormessage');
        if (guilty && folded.contains(input)) more.open = true;
      }
    },
  };
}

function presetBar(spec, choose) {
  const buttons = spec.presets.map(([label, values]) => button(label, () => choose({ ...values })));
  const same = (a, b) => Object.keys(a).every(name => a[name] === b[name]);
  return {
    node: make('div', { class: 'tbt-presets', role: 'group', 'aria-label': 'Presets' }, ...buttons),
    show(values) { buttons.forEach((one, i) => put(one, { 'aria-pressed': same(spec.presets[i][1], values) })); },
    rest(off) { buttons.forEach(one => { one.disabled = off; }); },
  };
}
