// The filter of the overview: what is typed goes into the address, so that the
// address is a permalink, and the page is drawn again.

const pause = 200; // ms without a key before the page is asked for

export function filter(form, draw) {
  const input = form.elements.q;
  let timer = 0;

  const apply = (keep) => {
    clearTimeout(timer);
    const url = new URL(location.href);
    url.searchParams.delete('offset');
    if (input.value.trim()) url.searchParams.set('q', input.value.trim());
    else url.searchParams.delete('q');
    if (url.href === location.href) return;
    history[keep ? 'pushState' : 'replaceState'](null, '', url);
    draw();
  };

  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(apply, pause);
  });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    apply(true);
  });
  addEventListener('popstate', () => {
    input.value = new URL(location.href).searchParams.get('q') ?? '';
    draw();
  });
  input.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    if (input.value) input.value = '';
    else input.blur();
    apply();
  });
  document.addEventListener('keydown', (e) => {
    const typing = e.target.closest?.('input, textarea, select, [contenteditable]');
    if (e.key !== '/' || typing || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    input.focus();
    input.select();
  });
}
