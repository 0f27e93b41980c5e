// The tools of every script here: programs to start and stop, a browser, and a page open in it.
import { spawn, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

export const { BUILD, CHROMIUM, PROGRAMS } = process.env;
export const require = createRequire(path.join(BUILD, 'package.json'));
export const { chromium } = require('playwright-core');
export const repository = path.resolve(import.meta.dirname, '../..');

export const settled = path.join(PROGRAMS, 'settled');
export const env = { ...process.env, SETTLED_ROOT: '', SETTLED_AGENT: '' };
export const DEADLINE_MS = 30_000;

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const assert = (holds, what) => { if (!holds) throw new Error(what); };

export async function until(what, probe, deadline = DEADLINE_MS) {
  const begun = Date.now();
  for (;;) {
    const found = await probe();
    if (found) return found;
    assert(Date.now() - begun < deadline, `waited ${deadline} ms in vain for: ${what}`);
    await sleep(5);
  }
}

export function run(...args) {
  const ended = spawnSync(settled, args, { env, encoding: 'utf8', maxBuffer: 1 << 28 });
  assert(ended.status !== null, `${args}: ${ended.error ?? ended.signal}`);
  return ended;
}

const children = new Set();
export function start(program, args, said) {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  child.text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { child.text += chunk; });
  return until(`${program} to say ${said}`, () => {
    assert(child.exitCode === null, `${program} ended: ${child.text}`);
    return child.text.includes(said) && child;
  });
}

export function end(child, signal = 'SIGKILL') {
  return new Promise((done) => {
    children.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return done();
    child.once('exit', done);
    child.kill(signal);
  });
}

/** `settled page` of a workspace. */
export async function servePage(root, ...args) {
  const child = await start(settled, ['page', root, '--', ...args], 'open http');
  child.link = /open (\S+)/.exec(child.text)[1];
  child.origin = new URL(child.link).origin;
  return child;
}

// One font on every machine, so that lines break at the same places.
const fonts = path.join(BUILD, 'fonts.conf');
fs.writeFileSync(fonts, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>/usr/share/fonts/truetype/dejavu</dir><cachedir>${BUILD}/fonts</cachedir>
${['monospace', 'ui-monospace'].map((name) => `<alias binding="same"><family>${name}</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>`).join('\n')}
${['system-ui', 'sans', 'sans-serif', 'serif'].map((name) => `<alias binding="same"><family>${name}</family><prefer><family>DejaVu Sans</family></prefer></alias>`).join('\n')}
<match target="pattern"><edit name="family" mode="append_last" binding="weak"><string>DejaVu Sans</string></edit></match>
</fontconfig>`);

export const browser = await chromium.launch({
  executablePath: CHROMIUM,
  env: { ...process.env, FONTCONFIG_FILE: fonts },
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

export async function opened(page, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const tab = await context.newPage();
  tab.errors = [];
  tab.on('pageerror', (error) => tab.errors.push(String(error)));
  tab.on('console', (message) => { if (message.type() === 'error') tab.errors.push(message.text()); });
  await tab.goto(page.link);
  return tab;
}

/** Ends what is still running. */
export async function endAll() {
  for (const child of [...children]) await end(child);
}
