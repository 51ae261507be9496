// The charts of a workload: what was learnt, and how it went. Numbers come from
// /api/v1; each chart has the same numbers as a table beneath it.

import uPlot from './vendor/uplot/uPlot.esm.js';
import { clockOf, dateOf } from './times.js';
import { number, percent, seconds, unit } from './format.js';
import { fillTable } from './table.js';

const height = 240;
const patience = 10_000; // ms for an answer
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const stepped = uPlot.paths.stepped({ align: 1 });

// colour reads one of the page's colours, which follow the reader's scheme.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(label, values, extra = {}) {
  return {
    label, values, stroke: colour('quiet'), font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', labelSize: 20, labelGap: 2, gap: 4,
    grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1, size: 5 }, ...extra,
  };
}

// levels draws lines across the plot, each with its name: the SLO from left to
// right, allocations from bottom to top.
function levels(marks) {
  return (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.lineWidth = 1.5 * ratio;
    ctx.textBaseline = 'alphabetic';
    ctx.textAlign = 'left';
    let row = 0;
    for (const m of marks()) {
      if (!Number.isFinite(m.at)) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(m.colour);
      ctx.setLineDash(m.dash.map((d) => d * ratio));
      ctx.beginPath();
      if (m.scale === 'y') {
        const y = u.valToPos(m.at, 'y', true);
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        const above = y - bbox.top > 18 * ratio;
        ctx.fillText(m.text, bbox.left + 6 * ratio, above ? y - 5 * ratio : y + 14 * ratio);
      } else if (m.short) {
        // A move: a small arrow at the bottom, up or down.
        const [x, size, y] = [u.valToPos(m.at, 'x', true), 5 * ratio, bbox.top + bbox.height - 3 * ratio];
        ctx.moveTo(x - size, m.up ? y : y - 2 * size);
        ctx.lineTo(x + size, m.up ? y : y - 2 * size);
        ctx.lineTo(x, m.up ? y - 2 * size : y);
        ctx.fill();
        continue;
      } else {
        const x = u.valToPos(m.at, 'x', true);
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        const end = x - bbox.left > bbox.width * 0.7;
        ctx.textAlign = end ? 'right' : 'left';
        ctx.fillText(m.text, x + (end ? -6 : 6) * ratio, bbox.top + bbox.height - (8 + 16 * row++) * ratio);
        ctx.textAlign = 'left';
      }
      ctx.stroke();
    }
    ctx.restore();
  };
}

// Chart is one figure: its plot, made when there is something to draw, and its
// table. describe returns, for some numbers: data (columns), series, marks,
// x (label, values), y (label, values, range), rows and heads of the table.
class Chart {
  #plot = null;
  #shape = null;

  constructor(id, describe, options = {}) {
    this.figure = document.getElementById(id);
    this.place = this.figure.querySelector('.plot');
    this.details = this.figure.querySelector('details');
    this.describe = describe;
    this.options = options;
    this.details.addEventListener('toggle', () => this.#table());
    new ResizeObserver(() => this.#plot?.setSize({ width: this.place.clientWidth, height })).observe(this.place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#forget() || this.draw());
  }

  // draw shows the numbers given, or again those of before.
  draw(numbers = this.numbers) {
    this.numbers = numbers;
    this.shape = numbers && this.describe(numbers);
    const some = this.shape && this.shape.data[0].length > 0;
    this.place.classList.toggle('none', !some);
    if ('optional' in this.figure.dataset) this.figure.hidden = !some;
    if (!some) {
      this.#forget();
      this.place.textContent = 'Nothing yet.';
    } else if (this.#plot && this.#shape === this.shape.series.length) {
      this.#plot.setData(this.shape.data, true);
    } else {
      this.#forget();
      this.place.textContent = '';
      this.#shape = this.shape.series.length;
      this.#plot = new uPlot(this.#uplot(this.shape), this.shape.data, this.place);
    }
    this.#table();
  }

  #forget() {
    this.#plot?.destroy();
    this.#plot = null;
  }

  #uplot(s) {
    return {
      width: this.place.clientWidth, height, scales: { x: { time: s.time, range: (u, lo, hi) => this.shape.x.range(lo, hi) }, y: { range: (u, lo, hi) => this.shape.y.range(lo, hi) } },
      axes: [axis(s.x.label, s.x.values, { size: 26 }), axis(s.y.label, s.y.values, { size: 46 })],
      series: s.series, bands: s.bands, legend: { markers: { width: 0, fill: (u, i) => s.series[i].mark ?? s.series[i].stroke ?? 'transparent' } },
      cursor: { drag: { x: s.time, y: false }, sync: s.time ? { key: 'time' } : undefined, points: { size: 6 } },
      hooks: { draw: [levels(() => this.shape.marks)], setSelect: [(u) => this.options.select?.(u)] },
    };
  }

  #table() {
    if (!this.details.open) return;
    fillTable(this.details.querySelector('.scroll'), this.shape?.heads ?? [], this.shape?.rows() ?? []);
  }
}

const amount = (a) => (typeof a === 'number' ? a : NaN);
const column = (values, i) => values[i] ?? null;
// padded leaves a little room, and makes a range of a single value.
const padded = (lo, hi) => (hi > lo ? [lo, hi] : [lo - 0.5, hi + 0.5]);

function performanceOf(share) {
  return share ? percent : number;
}

// upTo is a range from 0 to the highest of the data and the marks.
function upTo(marks, share) {
  return (lo, hi) => [0, share ? 1.03 : (Math.max(hi ?? 0, ...marks.filter((m) => m.scale === 'y' && Number.isFinite(m.at)).map((m) => m.at)) || 1) * 1.06];
}

function slo(e) {
  const text = `SLO ${performanceOf(e.performance_is_share)(e.slo_target)}`;
  return { scale: 'y', at: e.slo_target ?? NaN, text, colour: 'bad', dash: [6, 4] };
}

// curve is the learnt performance over the allocation, with its band, the
// observations, and where the workload is, wants to be, and needs to be.
function curve(e) {
  const word = unit(e.resource);
  const show = performanceOf(e.performance_is_share);
  const value = (u, v) => (v == null ? '–' : show(v));
  const marks = [
    slo(e),
    { scale: 'x', at: amount(e.allocation), text: `has ${number(amount(e.allocation))}`, colour: 'ink', dash: [] },
    { scale: 'x', at: e.demand ?? NaN, text: `needs ${number(e.demand)}`, colour: 'note', dash: [5, 3] },
  ];
  const knots = e.curve?.knots ?? [];
  const seen = e.observations ?? [];
  const right = Math.max(0, ...knots.map((k) => k.allocation), ...seen.map((o) => o.allocation), ...marks.filter((m) => m.scale === 'x' && Number.isFinite(m.at)).map((m) => m.at)) * 1.04;
  const rows = [...flat(knots, right).map((k) => [k.allocation, k.upper, k.lower, k.mean, null]), ...seen.map((o) => [o.allocation, null, null, null, o.performance])];
  rows.sort((a, b) => a[0] - b[0]);
  const line = { spanGaps: true, points: { show: false }, value };
  return {
    time: false, marks, data: [0, 1, 2, 3, 4].map((c) => rows.map((r) => r[c])),
    x: { label: `allocation, ${word}`, values: (u, vs) => vs.map(number), range: () => [0, right || 1] },
    y: { label: e.performance_is_share ? 'requests within the SLO' : 'performance', values: (u, vs) => vs.map(show), range: upTo([...marks, ...knots.map((k) => ({ scale: 'y', at: k.upper }))], e.performance_is_share) },
    bands: [{ series: [1, 2], fill: colour('blue-soft') }],
    series: [
      { label: `allocation, ${word}`, value: (u, v) => (v == null ? '–' : number(v)) },
      { label: 'at most', stroke: 'transparent', mark: colour('blue-soft'), ...line }, { label: 'at least', stroke: 'transparent', mark: colour('blue-soft'), ...line },
      { label: 'learnt', stroke: colour('blue'), width: 2, ...line },
      { label: 'observed, at any load', stroke: colour('ink'), fill: colour('ink'), paths: () => null, points: { show: true, size: 5, width: 0, fill: `${colour('ink')}80` }, value },
    ],
    heads: [`allocation, ${word}`, 'at least', 'learnt', 'at most'],
    rows: () => knots.map((k) => [number(k.allocation), show(k.lower), show(k.mean), show(k.upper)]),
  };
}

// flat adds what the curve says outside its knots: the same as at the nearest.
function flat(knots, right) {
  if (knots.length === 0) return [];
  const out = [...knots];
  if (knots[0].allocation > 0) out.unshift({ ...knots[0], allocation: 0 });
  const last = knots[knots.length - 1];
  if (last.allocation < right) out.push({ ...last, allocation: right });
  return out;
}

// happened are the moves, as arrows at the bottom, and the rounds that an alert started.
function happened(h, e, d) {
  if (h.time.length === 0) return [];
  const from = h.time[0];
  const at = (t) => new Date(t).getTime() / 1000;
  const moves = (d?.decisions ?? []).filter((x) => x.action.mode === 'act' && at(x.time) >= from);
  const alerts = (e.alerts ?? []).filter((x) => at(x.time) >= from);
  return [
    ...moves.map((x) => ({ scale: 'x', at: at(x.time), short: true, up: amount(x.action.set) > amount(x.action.expect), text: '', colour: 'quiet', dash: [] })),
    ...alerts.map((x) => ({ scale: 'x', at: at(x.time), text: 'alert', colour: 'bad', dash: [2, 3] })),
  ];
}

// overTime describes columns of the history as lines over time.
function overTime({ h, e, d, view }, lines, y) {
  const marks = [...(y.marks ?? []), ...happened(h, e, d)];
  const value = (u, v) => (v == null ? '–' : y.show(v));
  const ends = view();
  return {
    time: true, marks, data: [h.time, ...lines.map((l) => l.data)],
    x: { label: `time, ${zone}`, values: (u, vs) => vs.map((v, i) => tick(v, vs[1] - vs[0])), range: (lo, hi) => ends ?? padded(lo, hi) },
    y: { label: y.label, values: (u, vs) => vs.map(y.show), range: upTo([...marks, ...(y.room ?? [])], y.share) },
    series: [
      { label: 'time', value: (u, v) => (v == null ? '–' : `${dateOf(new Date(v * 1000))} (${new Date(v * 1000).toISOString().slice(11, 19)} UTC)`) },
      ...lines.map(({ label, stroke, dash, paths, fill }) => ({ label, stroke: colour(stroke), width: 1.6, dash, paths, fill: fill && colour(fill), points: { show: h.time.length < 2 }, value })),
    ],
    heads: ['time', ...lines.map((l) => l.label)],
    rows: () => h.time.map((t, i) => [{ time: new Date(t * 1000) }, ...lines.map((l) => value(null, column(l.data, i)))]).reverse(),
    e,
  };
}

function tick(v, apart) {
  const d = new Date(v * 1000);
  if (apart >= 86400) return d.toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
  return apart >= 60 ? clockOf(d).slice(0, 5) : clockOf(d);
}

function allocation(n) {
  const word = unit(n.h.resource);
  const used = n.h.used.some((v) => v != null) ? [{ label: `used, ${word}`, data: n.h.used, stroke: 'note' }] : [];
  const marks = [{ scale: 'y', at: n.e.demand ?? NaN, text: `needs ${number(n.e.demand)}`, colour: 'note', dash: [5, 3] }];
  return overTime(n, [{ label: `allocation, ${word}`, data: n.h.allocation, stroke: 'blue', paths: stepped, fill: 'blue-soft' }, ...used], { label: word, show: number, marks });
}

function load(n) {
  return overTime(n, [{ label: 'load', data: n.h.load, stroke: 'blue' }, { label: 'forecast, at most', data: n.h.load_upper, stroke: 'quiet', dash: [5, 3] }], { label: 'requests/s', show: number });
}

function performance(n) {
  const share = n.h.performance_is_share;
  return overTime(n, [{ label: share ? 'within the SLO' : 'performance', data: n.h.performance, stroke: 'good' }], { label: share ? 'of requests' : 'performance', show: performanceOf(share), marks: [slo(n.e)], share });
}

// latency is told of every service whose spans come, configured or not.
function latency(n) {
  const lines = [['p50', n.h.p50_s, 'quiet'], ['p95', n.h.p95_s, 'blue'], ['p99', n.h.p99_s, 'note']];
  return overTime(n, lines.map(([label, data, stroke]) => ({ label, data, stroke })), { label: 'latency', show: seconds });
}

// refused is what gates refused, by class; nothing where they refused none.
function refused(n) {
  const strokes = ['bad', 'note', 'blue', 'good', 'ink', 'quiet'];
  const lines = Object.entries(n.h.refused_per_second ?? {}).map(([label, data], i) => ({ label, data, stroke: strokes[i % strokes.length], dash: i < strokes.length ? undefined : [5, 3] }));
  return overTime(lines.length ? n : { ...n, h: { ...n.h, time: [] } }, lines, { label: 'requests/s', show: number });
}

// Charts are those of a page, and the time that they show.
export class Charts {
  #asking = false;
  #again = false;

  // api is the address of the workload in the API.
  constructor(api) {
    this.api = new URL(api, location.href);
    const options = { select: (u) => this.#select(u) };
    const those = (kinds, options) => Object.entries(kinds).filter(([id]) => document.getElementById(id)).map(([id, describe]) => new Chart(id, describe, options));
    this.still = those({ curve });
    this.overTime = those({ performance, allocation, load, latency, refused }, options);
    document.getElementById('ranges')?.addEventListener('click', (e) => this.#choose(e));
    addEventListener('popstate', () => this.update());
    for (const c of this.overTime) c.place.addEventListener('dblclick', () => this.#show(new URL(location.pathname + withoutZoom(), location.href)));
  }

  // update asks for the numbers again and draws them; while they are on their
  // way it waits for them. Without an answer the old ones stay, and the page
  // says that the connection is lost.
  async update() {
    this.#again = this.#asking;
    if (this.#asking) return;
    this.#asking = true;
    try {
      const range = new URL(location.href).searchParams.get('range') ?? '15m';
      const [e, h, d] = await Promise.all([this.#get('', 'observations', 500), this.#get('/history', 'since', range === 'all' ? '' : range), this.#get('/decisions', 'limit', 200)]);
      for (const c of this.still) c.draw(e);
      for (const c of this.overTime) c.draw({ h, e, d, view: zoomed });
    } catch {
      // The next drawing asks again.
    } finally {
      this.#asking = false;
      if (this.#again) this.update();
    }
  }

  async #get(part, name, value) {
    const url = new URL(this.api);
    url.pathname += part;
    url.searchParams.set(name, value);
    const answer = await fetch(url, { signal: AbortSignal.timeout(patience) });
    if (!answer.ok) throw new Error(`${url.pathname}: ${answer.status}`);
    return answer.json();
  }

  // A range that was dragged goes into the address, as one that was chosen.
  #select(u) {
    if (!(u.select.width > 0)) return;
    const [from, to] = [u.select.left, u.select.left + u.select.width].map((x) => u.posToVal(x, 'x').toFixed(0));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (from === to) return;
    const url = new URL(location.href);
    url.searchParams.set('from', from);
    url.searchParams.set('to', to);
    // The other charts over time follow the first, with the same range.
    if (url.href !== location.href) this.#show(url);
  }

  #choose(event) {
    const link = event.target.closest('a');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.#show(new URL(link.href));
  }

  #show(url) {
    history.pushState(null, '', url);
    dispatchEvent(new PopStateEvent('popstate'));
  }
}

function withoutZoom() {
  const q = new URLSearchParams(location.search);
  q.delete('from');
  q.delete('to');
  return q.size ? `?${q}` : '';
}

// zoomed is the part of the time in the address, as seconds, or null.
function zoomed() {
  const q = new URL(location.href).searchParams;
  const [from, to] = [Number(q.get('from')), Number(q.get('to'))];
  return from > 0 && to > from ? [from, to] : null;
}
