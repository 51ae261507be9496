// Numbers as people read them, the same as the server prints them.

export function number(v) {
  if (v === 0) return '0';
  if (v == null || !Number.isFinite(v)) return '–';
  const digits = Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v)))));
  const s = v.toFixed(digits);
  return s.includes('.') ? s.replace(/\.?0+$/, '') : s;
}

// percent never rounds up to all.
export function percent(v) {
  if (v == null || !Number.isFinite(v)) return '–';
  const p = 100 * v;
  if (p >= 99 && p < 100) return `${(Math.floor(10 * p) / 10).toFixed(1)}%`;
  return `${p.toFixed(0)}%`;
}

// seconds says a time as people do: 3.2 ms, 1.5 s.
export function seconds(v) {
  if (v == null || !Number.isFinite(v)) return '–';
  if (v >= 1) return `${number(v)} s`;
  return v >= 0.01 ? `${(1000 * v).toFixed(0)} ms` : `${number(1000 * v)} ms`;
}

export function unit(resource) {
  return { cpu: 'cores', '': 'units', undefined: 'units' }[resource] ?? resource;
}
