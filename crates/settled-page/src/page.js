// Keeps an open page at the ledger's end: each record arrives once, under its number, and what it changed is drawn by
// the server. Texts are set as texts, never as markup of ours.
'use strict';
(() => {
  const live = document.getElementById('live');
  const content = () => document.getElementById('content');
  const told = [];
  let wanted = false, busy = false, events = null;

  // For whoever tests: the records that arrived, in order.
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
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.nodeName === 'INPUT' || old.nodeName === 'SELECT') return;
    const before = [...old.childNodes], after = [...now.childNodes];
    after.forEach((child, n) => {
      if (n < before.length) morph(before[n], child); else old.appendChild(child.cloneNode(true));
    });
    before.slice(after.length).forEach((child) => child.remove());
  }

  async function draw() {
    if (busy) { wanted = true; return; }
    busy = true;
    try {
      do {
        wanted = false;
        const answer = await fetch(location.href, { credentials: 'same-origin' });
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
    events = new EventSource('/events?after=' + encodeURIComponent(content().dataset.seq));
    events.addEventListener('record', (event) => {
      const record = JSON.parse(event.data);
      told.push(record.seq);
      draw();
    });
    events.addEventListener('daemon', (event) => { say(event.data); draw(); });
    events.addEventListener('reload', () => location.reload());
    events.addEventListener('error', () => { say('cut'); });
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

  dress();
  follow();
  // Times run on while nothing happens.
  setInterval(draw, 30000);
})();
