// Linked: a term of the formula, its marks, its figure and its control light up together, from any of them.

function lights(root) {
  let lit = '';
  const around = node => node?.closest?.('[data-term]')?.dataset.term ?? '';
  function light(terms) {
    if (terms === lit) return;
    lit = terms;
    const wanted = new Set(terms.split(' ').filter(Boolean));
    let pictured = false;
    for (const node of root.querySelectorAll('[data-term]')) {
      const on = node.dataset.term.split(' ').some(term => wanted.has(term));
      if (node.classList.contains('lit') !== on) node.classList.toggle('lit', on);
      pictured ||= on && node instanceof SVGElement;
    }
    if (pictured) put(root, { 'data-lit': terms }); else root.removeAttribute('data-lit');
  }
  const focused = () => (root.contains(document.activeElement) && document.activeElement.matches(':focus-visible') ? around(document.activeElement) : '');
  root.addEventListener('pointerover', event => { if (!event.buttons) light(around(event.target) || focused()); });
  root.addEventListener('pointerleave', () => light(focused()));
  root.addEventListener('focusin', () => light(focused()));
  root.addEventListener('focusout', () => light(''));
  // after the picture changed: a mark that came lights too
  return () => { const now = lit; lit = ''; if (now) light(now); };
}
