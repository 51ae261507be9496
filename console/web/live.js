// Keeps the page as new as the server: it waits for events, asks for the same
// page again, and changes what differs. When the connection is lost it says so,
// since when, and tries again after 1, 2, 4 … 30 s.

import { morph } from './morph.js';
import * as times from './times.js';

const usually = 1000; // ms, the least between two drawings
const atLeast = 15_000; // ms, the most: what is stale is found out without an event
const patience = 10_000; // ms for an answer
const longest = 30_000; // ms between two attempts

export class Live {
  #events = null;
  #asked = null; // AbortController of the request under way
  #next = 0; // timer of the next drawing
  #last = 0; // when the last one was asked for
  #lost = null; // since when the connection is lost
  #attempts = 0;
  #retryAt = 0;
  #retry = 0;

  // drawn is called after each drawing. A page that is dear says what is the least
  // time between two, in ms.
  constructor(drawn) {
    this.drawn = drawn;
    this.between = Number(document.body.dataset.between) || usually;
    this.banner = document.getElementById('lost');
    this.banner.querySelector('button').addEventListener('click', () => this.#connect());
    document.addEventListener('visibilitychange', () => this.#visible());
    setInterval(() => this.#tick(), 1000);
  }

  start() {
    times.serverTime(document.body.dataset.time);
    this.#last = Date.now();
    this.#visible();
  }

  // draw asks for the page that the address names and draws it. One that is
  // asked for meanwhile is forgotten: the reader wants another one.
  async draw() {
    clearTimeout(this.#next);
    this.#next = 0;
    this.#asked?.abort();
    const asked = (this.#asked = new AbortController());
    this.#last = Date.now();
    try {
      const signal = AbortSignal.any([asked.signal, AbortSignal.timeout(patience)]);
      const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, signal });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (asked.signal.aborted) return;
      this.#take(fresh);
    } catch (e) {
      if (!asked.signal.aborted) this.#fail(e.message);
    } finally {
      if (this.#asked === asked) this.#asked = null;
    }
  }

  #take(fresh) {
    document.title = fresh.title;
    document.body.dataset.time = fresh.body.dataset.time;
    times.serverTime(fresh.body.dataset.time);
    // The new texts are as the old ones before they are compared.
    times.show(fresh);
    for (const old of document.querySelectorAll('[data-live]')) {
      const next = fresh.getElementById(old.id);
      if (next) morph(old, document.adoptNode(next));
    }
    this.drawn();
  }

  // soon draws at most once in that time, however many events come, and only when
  // the answer before is here: a slow server is not asked more, and its answers
  // are drawn.
  soon() {
    if (this.#next || document.hidden) return;
    const pause = Math.max(0, this.#last + this.between - Date.now());
    this.#next = setTimeout(() => {
      this.#next = 0;
      if (this.#asked) this.soon();
      else this.draw();
    }, pause || usually / 4);
  }

  // A page that nobody sees holds no connection: browsers give few to a site.
  #visible() {
    if (document.hidden) {
      this.#close();
      clearTimeout(this.#retry);
    } else if (!this.#events) {
      this.#connect();
    }
  }

  #close() {
    this.#events?.close();
    this.#events = null;
  }

  #connect() {
    this.#close();
    clearTimeout(this.#retry);
    this.#retryAt = 0;
    const events = (this.#events = new EventSource('/api/v1/events'));
    events.addEventListener('open', () => this.#found());
    events.addEventListener('error', () => this.#fail('no events'));
    events.addEventListener('changed', (e) => {
      if (this.#concerns(e.data)) this.soon();
    });
  }

  // concerns tells whether a change is on this page: all of them, but on the
  // page of one workload.
  #concerns(data) {
    const mine = document.body.dataset.workload;
    if (mine === undefined) return true;
    try {
      const names = JSON.parse(data).workloads;
      return !Array.isArray(names) || names.length === 0 || names.includes(mine);
    } catch {
      return true;
    }
  }

  #found() {
    const again = this.#lost !== null;
    this.#attempts = 0;
    this.#lost = null;
    this.banner.hidden = true;
    document.body.classList.remove('old');
    document.body.classList.add('live');
    // What happened between the page and the events is drawn too.
    if (again) this.draw();
    else this.soon();
  }

  #fail(why) {
    this.#close();
    if (document.hidden || this.#retryAt) return;
    this.#lost ??= new Date();
    this.#attempts++;
    const pause = Math.min(longest, 1000 * 2 ** (this.#attempts - 1)) * (0.75 + Math.random() / 2);
    this.#retryAt = Date.now() + pause;
    this.#retry = setTimeout(() => this.#connect(), pause);
    document.body.classList.remove('live');
    document.body.classList.add('old');
    this.banner.querySelector('b').textContent = `Connection lost at ${times.clockOf(this.#lost)}: ${why}.`;
    this.banner.hidden = false;
    this.#tick();
  }

  #tick() {
    times.show();
    if (this.#retryAt) {
      const left = Math.max(0, Math.ceil((this.#retryAt - Date.now()) / 1000));
      this.banner.querySelector('span').textContent = `What you see is of then. Next attempt in ${left} s.`;
    } else if (!document.hidden && !this.#asked && Date.now() - this.#last > Math.max(atLeast, this.between)) {
      this.draw();
    }
  }
}
