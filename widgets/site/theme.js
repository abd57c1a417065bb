// Before anything is drawn: the reader's own choice of theme, if there is one. Nothing else is ever kept.
{
  const page = document.documentElement;
  page.dataset.scripts = 'on';
  let chosen = null;
  try { chosen = localStorage.getItem('theme'); } catch { /* a browser that keeps nothing */ }
  if (chosen === 'light' || chosen === 'dark') page.dataset.theme = chosen;
}
