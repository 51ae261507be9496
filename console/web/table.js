// Tables from numbers, for those who read instead of look. Everything that is
// put in is text.

import { dateOf } from './times.js';

const most = 720;

export function fillTable(place, heads, rows) {
  if (rows.length === 0) {
    place.textContent = 'Nothing yet.';
    return;
  }
  const table = document.createElement('table');
  const head = table.createTHead().insertRow();
  for (const text of heads) {
    const th = document.createElement('th');
    th.scope = 'col';
    th.textContent = text;
    head.append(th);
  }
  const body = table.createTBody();
  for (const cells of rows.slice(0, most)) row(body.insertRow(), cells);
  place.replaceChildren(table);
}

function row(tr, [first, ...rest]) {
  const th = document.createElement('th');
  th.scope = 'row';
  th.append(cell(first));
  tr.append(th);
  for (const value of rest) tr.insertCell().append(cell(value));
}

// cell is a text, or a time with UTC on hover.
function cell(value) {
  if (!value?.time) return document.createTextNode(value);
  const t = document.createElement('time');
  t.dateTime = value.time.toISOString();
  t.textContent = dateOf(value.time);
  t.title = `${value.time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return t;
}
