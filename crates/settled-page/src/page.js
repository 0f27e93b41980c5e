// Keeps an open page at the ledger's end: each record arrives once, under its number, and what it changed is drawn by
// the server. Texts are set as texts, never as markup of ours.
'use strict';
(() => {
  const live = document.getElementById('live');
  const content = () => document.getElementById('content');
  const told = [];
  let wanted = false, busy = false, events = null;

  // For tests: the records that arrived, in order.
  window.settledRecords = told;

  const daemon = {
    serving: '● The daemon serves.',
    stopped: '✕ The daemon is stopped: no mail is judged or delivered.',
    unknown: '? This user cannot see whether a daemon serves.',
    cut: '✕ The page is cut off: settled page was stopped. Open its new link.',
  };

  function say(word) {
    if (live.dataset.daemon === word) return;
    live.dataset.daemon = word;
    live.textContent = daemon[word];
  }

  // Makes `old` like `now` and touches nothing that is the same: focus, scroll position, open details and what
  // somebody types stay.
  function morph(old, now) {
    if (old.isEqualNode(now)) return;
    if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) { old.replaceWith(now.cloneNode(true)); return; }
    if (old.nodeType !== Node.ELEMENT_NODE) { old.nodeValue = now.nodeValue; return; }
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name);
    }
    for (const { name, value } of [...now.attributes]) {
      if (name === 'hidden' && old.classList.contains('copy')) continue;
      // A form gives one order, even if the page is redrawn between two clicks on its button.
      if (name === 'value' && old.name === 'order') continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.nodeName === 'INPUT' || old.nodeName === 'SELECT') return;
    const kept = new Map();
    for (const child of [...old.childNodes]) if (key(child)) kept.set(key(child), child);
    const wanted = new Set([...now.childNodes].map(key));
    for (const [name, child] of kept) if (!wanted.has(name)) child.remove();
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      const same = kept.get(key(child));
      if (same) {
        kept.delete(key(child));
        if (same === at) at = at.nextSibling;
        // The element in which a person types stays where it is, since a moved element loses the focus; the others go around it.
        else if (same.contains(document.activeElement)) { same.after(...between(at, same)); at = same.nextSibling; }
        else old.insertBefore(same, at);
        morph(same, child);
      } else if (at && !key(at) && !key(child)) {
        const next = at.nextSibling;
        morph(at, child);
        at = next;
      } else old.insertBefore(child.cloneNode(true), at);
    }
    for (const child of between(at, null)) child.remove();
  }

  // The subject of an element: a list may grow above a form that a person fills in, which must stay the form of its thread.
  function key(node) {
    return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || node.dataset.review || node.dataset.record : undefined;
  }

  function between(first, end) {
    const nodes = [];
    for (let node = first; node && node !== end; node = node.nextSibling) nodes.push(node);
    return nodes;
  }

  async function draw() {
    if (busy) { wanted = true; return; }
    busy = true;
    try {
      do {
        wanted = false;
        const answer = await fetch(content().dataset.home ?? location.href, { credentials: 'same-origin' });
        if (!answer.ok) break;
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const now = page.getElementById('content');
        if (now) morph(content(), document.adoptNode(now));
        const foot = page.querySelector('footer');
        if (foot) morph(document.querySelector('footer'), document.adoptNode(foot));
        dress();
      } while (wanted);
    } catch (_) {
      // The events say so when the server is gone.
    } finally {
      busy = false;
    }
  }

  function follow() {
    events = new EventSource('/events?after=' + encodeURIComponent(told.at(-1) ?? content().dataset.seq));
    events.addEventListener('record', (event) => {
      const record = JSON.parse(event.data);
      told.push(record.seq);
      draw();
    });
    events.addEventListener('daemon', (event) => { say(event.data); draw(); });
    events.addEventListener('alerts', draw);
    events.addEventListener('reload', () => location.reload());
    events.addEventListener('error', () => { say('cut'); });
  }

  // A browser has six connections to a server, and a page that follows holds one: a hidden tab gives its connection back.
  function attend() {
    if (document.hidden) { events?.close(); events = null; } else if (!events) follow();
  }

  function dress() {
    for (const button of document.querySelectorAll('button.copy[hidden]')) button.hidden = false;
  }

  document.addEventListener('click', async (event) => {
    const button = event.target.closest && event.target.closest('button.copy');
    if (!button) return;
    try { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = 'Copied'; } catch (_) { button.textContent = 'Copy by hand'; }
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });

  // The answer to a decision is shown once: reloading the page must not send the decision again.
  if (content().dataset.home) history.replaceState(null, '', content().dataset.home);
  dress();
  attend();
  document.addEventListener('visibilitychange', attend);
  // Times run on while nothing happens.
  setInterval(() => { if (!document.hidden) draw(); }, 30000);
})();
