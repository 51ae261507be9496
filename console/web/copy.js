// Buttons that copy the text of the element that they name in data-copy.

export function copying(root) {
  root.addEventListener('click', async (e) => {
    const button = e.target.closest?.('button[data-copy]');
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const done = await copy(source);
    button.textContent = done ? 'Copied' : 'Selected: press Ctrl+C';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  });
}

// copy needs a page from localhost or over TLS; elsewhere the text is selected
// for the reader to copy.
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return false;
  }
}
