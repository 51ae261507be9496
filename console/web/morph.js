// Changes a tree of nodes into another one, and only where they differ, so
// that focus, selection, scroll places and opened details stay.
//
// Both trees come from the server's templates, which escape every value; no
// text is ever parsed as HTML here. Elements with data-key are matched by it,
// others by their place. What is inside data-own belongs to a script and stays.

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(document.adoptNode(fresh));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  attributes(old, fresh);
  if (!old.hasAttribute('data-own')) children(old, fresh);
}

function keyOf(node) {
  return node.dataset?.key;
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // Whether details are open is the reader's choice.
    if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function children(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) {
    if (keyOf(child) !== undefined) keyed.set(keyOf(child), child);
  }
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = keyOf(next);
    const now = key === undefined ? at : keyed.get(key);
    if (!now || (key === undefined && keyOf(now) !== undefined)) {
      old.insertBefore(document.adoptNode(next), at);
      continue;
    }
    keyed.delete(key);
    if (now === at) at = at.nextSibling;
    else move(old, now, at);
    morph(now, next);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

// move keeps the focus where the browser can (moveBefore), and gives it back
// where it cannot.
function move(parent, node, before) {
  if (parent.moveBefore) {
    parent.moveBefore(node, before);
    return;
  }
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(node, before);
  focused?.focus({ preventScroll: true });
}
