// Makes the pictures for strangers: those of the terminal from SVG, those of the page in a real browser.
import fs from 'node:fs';
import path from 'node:path';

import { browser, end, endAll, opened, servePage, settled, start } from './browser.mjs';

const { INTO, PICTURES } = process.env;
const looks = {
  light: {}, dark: { colorScheme: 'dark' }, phone: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 },
};

async function ofTerminal(name) {
  const svg = fs.readFileSync(path.join(PICTURES, `${name}.svg`), 'utf8');
  const [, width, height] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg).map(Number);
  const tab = await (await browser.newContext({ viewport: { width: Math.ceil(width), height: Math.ceil(height) } })).newPage();
  await tab.setContent(`<style>body{margin:0}svg{display:block}</style>${svg}`);
  await tab.screenshot({ path: path.join(INTO, `${name}.png`) });
  await tab.context().close();
}

async function ofPage(name) {
  const { page, look, serves, review } = JSON.parse(fs.readFileSync(path.join(PICTURES, `${name}.json`), 'utf8'));
  const root = path.join(PICTURES, `${name}-mailroom`);
  const daemon = serves ? await start(settled, ['serve', root], 'serving') : null;
  const server = await servePage(root);
  const tab = await opened(server, looks[look]);
  if (page === 'review') await tab.goto(`${server.origin}/review?key=${encodeURIComponent(review)}`);
  const word = serves ? 'serving' : 'stopped';
  await tab.waitForFunction((word) => document.getElementById('live').dataset.daemon === word, word);
  await tab.screenshot({ path: path.join(INTO, `${name}.png`) });
  await tab.context().close();
  await end(server);
  if (daemon) await end(daemon);
}

try {
  for (const file of fs.readdirSync(PICTURES).sort()) {
    const { name, ext } = path.parse(file);
    if (ext === '.svg') await ofTerminal(name);
    if (ext === '.json') await ofPage(name);
  }
} finally {
  await endAll();
  await browser.close();
}
