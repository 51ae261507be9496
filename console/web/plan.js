// The page of the newest plan: what it recommends can be approved.

import { Live } from './live.js';
import { copying } from './copy.js';
import * as times from './times.js';

const patience = 10_000; // ms for the planner to answer

async function approve(button) {
  const plan = button.dataset.apply;
  const said = button.nextElementSibling;
  button.disabled = true;
  said.textContent = 'sent …';
  try {
    const sent = await fetch('/api/v1/commands', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ verb: 'apply', plan, by: 'console' }) });
    if (!sent.ok) throw new Error((await sent.json()).error);
    said.textContent = await outcome(plan);
  } catch (e) {
    said.textContent = `not approved: ${e.message}`;
    button.disabled = false;
  }
}

// outcome waits for the plan that answers.
async function outcome(plan) {
  for (const until = Date.now() + patience; Date.now() < until; await new Promise((done) => setTimeout(done, 200))) {
    const answer = await fetch(`/api/v1/applied/${encodeURIComponent(plan)}`);
    if (!answer.ok) continue;
    const p = await answer.json();
    if (!p.last) continue;
    if (p.applies) return `carried out by plan ${p.epoch}-${p.sequence}`;
    const held = Object.entries(p.held ?? {}).map(([name, why]) => `${name}: ${why.text}`);
    throw new Error([p.cause.text, ...held].filter(Boolean).join('; '));
  }
  throw new Error('the planner did not answer within 10 s; the pages show what happens');
}

addEventListener('click', (e) => {
  const button = e.target.closest?.('button[data-apply]');
  if (button) approve(button);
});
const live = new Live(() => {});
copying(document);
times.show();
live.start();
