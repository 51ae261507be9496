// Times in the reader's zone, with UTC on hover, and ages that go on.
//
// The server prints UTC in <time datetime="…">; data-show says what is wanted:
// "clock" (12:03:04), "date" (with the day when it is another one) or "ago".

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

export function clockOf(date) {
  return clock.format(date);
}

// dateOf names the day too, unless it is today.
export function dateOf(date) {
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

// ageOf prints seconds as the server does: 0.4 s, 12 s, 3 min, 2 h, 5 d.
export function ageOf(seconds) {
  if (!(seconds > 0)) return '0 s';
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(0)} min`;
  if (seconds < 48 * 3600) return `${(seconds / 3600).toFixed(0)} h`;
  return `${(seconds / 86400).toFixed(0)} d`;
}

// The difference between the server's clock and this one, in milliseconds, so
// that ages do not depend on how this machine's clock is set.
let ahead = 0;

export function serverTime(iso) {
  const t = Date.parse(iso);
  if (!Number.isNaN(t)) ahead = t - Date.now();
}

export function show(root = document) {
  const now = Date.now() + ahead;
  for (const e of root.querySelectorAll('time[data-show]')) {
    const t = new Date(e.dateTime);
    if (Number.isNaN(t.getTime())) continue;
    const text = { clock: clockOf, date: dateOf, ago: (d) => ageOf((now - d) / 1000) }[e.dataset.show]?.(t);
    if (text !== undefined && e.textContent !== text) e.textContent = text;
    e.title = t.toISOString().replace('T', ' ').replace(/\.\d+Z$|Z$/, ' UTC');
  }
}
