// The page of what-if: what is dragged goes into the address, so that the address
// is a permalink, and the page is drawn again.

import { Live } from './live.js';
import { copying } from './copy.js';
import * as times from './times.js';

const pause = 120; // ms without a move before the page is asked for

const form = document.getElementById('change');
const live = new Live(() => {});
let timer = 0;

function show(input) {
  const say = (v) => ('share' in input.dataset ? `${Number((100 * Number(v)).toFixed(2))}%` : v);
  const text = say(input.value);
  input.nextElementSibling.value = input.value === input.dataset.was ? text : `${text} (now ${say(input.dataset.was)})`;
  if ('share' in input.dataset) input.setAttribute('aria-valuetext', text);
}

function address() {
  const url = new URL(location.href);
  const kept = ['q', 'sort'].map((name) => [name, url.searchParams.get(name)]);
  url.search = '';
  for (const [name, value] of kept) if (value) url.searchParams.set(name, value);
  for (const input of form.querySelectorAll('input[type=range]')) {
    if (input.value !== input.dataset.was) url.searchParams.set(input.name, input.value);
  }
  return url;
}

function ask() {
  history.replaceState(null, '', address());
  live.draw();
}

if (form) {
  form.querySelector('[data-plain]').hidden = true;
  form.querySelectorAll('input[type=range]').forEach(show);
  form.addEventListener('input', (e) => {
    if (e.target.type !== 'range') return;
    show(e.target);
    clearTimeout(timer);
    timer = setTimeout(ask, pause);
  });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    ask();
  });
}
copying(document);
times.show();
live.start();
