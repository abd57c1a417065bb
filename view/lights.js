// Linked: a term of the formula, its marks, its figure and its control light up together, from any of them.

function lights(root) {
  let from = null;
  const around = node => node?.closest?.('[data-term]') ?? null;
  // Who points at a term or a mark wants it alone; who pulls a knob or a slider wants to see all that follows.
  const pulls = () => root.contains(document.activeElement) && document.activeElement.matches('.tbt-grip, .tbt-control *');
  const asks = node => Boolean(node) && !node.matches('.handle, .tbt-control') && (!pulls() || node.closest('.tbt-formula, .tbt-figures'));
  function light(node) {
    if (node === from) return;
    from = node;
    const terms = node?.dataset.term ?? '';
    const wanted = new Set(terms.split(' ').filter(Boolean));
    let pictured = false;
    for (const node of root.querySelectorAll('[data-term]')) {
      const on = node.dataset.term.split(' ').some(term => wanted.has(term));
      if (node.classList.contains('lit') !== on) node.classList.toggle('lit', on);
      pictured ||= on && node instanceof SVGElement;
    }
    if (pictured && asks(node)) put(root, { 'data-lit': terms }); else root.removeAttribute('data-lit');
  }
  const focused = () => (root.contains(document.activeElement) && document.activeElement.matches(':focus-visible') ? around(document.activeElement) : null);
  root.addEventListener('pointerover', event => { if (!event.buttons) light(around(event.target) || focused()); });
  root.addEventListener('pointerleave', () => light(focused()));
  root.addEventListener('focusin', () => light(focused()));
  root.addEventListener('focusout', () => light(null));
  // after the picture changed: a mark that came lights too
  return () => { const now = from; from = null; if (now) light(now); };
}
