// The pictures in the repository, and their comparison with a page. A stored picture is a quarter of the page's size,
// and blocks of 32 px of the page are compared. So slightly different letters of another browser version pass, but a
// part that is missing, moved, unreadable or of another colour does not.
import fs from 'node:fs';
import path from 'node:path';

import { repository } from './browser.mjs';

const KEPT = path.join(repository, 'tests/browser/kept');
const SCALE = 4;
const BLOCK = 8;
/** How far a block's mean colour may be off, of 255. */
const COLOUR = 12;
/** The share of blocks that may be off all the same: another version of the browser draws an edge elsewhere. */
const SHARE = 0.02;

/** Opens a tab that shrinks pictures and compares them, which Node alone cannot. */
export async function openStudio(browser) {
  const tab = await (await browser.newContext()).newPage();
  return tab;
}

const url = (bytes, kind) => `data:image/${kind};base64,${bytes.toString('base64')}`;

/** A screenshot as it is kept. */
export async function shrunk(studio, png) {
  const data = await studio.evaluate(async ([source, scale]) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil(image.width / scale);
    canvas.height = Math.ceil(image.height / scale);
    const pen = canvas.getContext('2d');
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL('image/webp', 0.8);
  }, [url(png, 'png'), SCALE]);
  return Buffer.from(data.split(',')[1], 'base64');
}

/** Says how two kept pictures differ, or nothing. */
export async function difference(studio, one, other) {
  const found = await studio.evaluate(async ([sources, block, colour]) => {
    const [one, other] = await Promise.all(sources.map(async (source) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [image.width, image.height];
      const pen = canvas.getContext('2d', { willReadFrequently: true });
      pen.drawImage(image, 0, 0);
      return { width: image.width, height: image.height, pen };
    }));
    const sizes = [one, other].map(({ width, height }) => `${width} x ${height}`);
    if (one.width !== other.width || Math.abs(one.height - other.height) > 0.03 * one.height + 4) return { sizes };
    const mean = ({ pen }, x, y) => {
      const { data } = pen.getImageData(x, y, block, block);
      const sums = [0, 0, 0];
      for (let n = 0; n < data.length; n += 4) for (let c = 0; c < 3; c++) sums[c] += data[n + c];
      return sums.map((sum) => (sum * 4) / data.length);
    };
    let off = 0, all = 0;
    for (let y = 0; y + block <= Math.min(one.height, other.height); y += block) {
      for (let x = 0; x + block <= one.width; x += block) {
        const [a, b] = [mean(one, x, y), mean(other, x, y)];
        all++;
        if (a.some((value, c) => Math.abs(value - b[c]) > colour)) off++;
      }
    }
    return { sizes, share: off / all };
  }, [[one, other].map((bytes) => url(bytes, 'webp')), BLOCK, COLOUR]);
  if (found.share === undefined) return `the sizes are ${found.sizes.join(' and ')}`;
  return found.share > SHARE ? `${(100 * found.share).toFixed(1)} % of the blocks differ` : null;
}

/** Compares a screenshot with the kept picture of that name; with `UPDATE=1` it becomes that picture. */
export async function isAsKept(studio, name, png, shots) {
  const now = await shrunk(studio, png);
  const file = path.join(KEPT, `${name}.webp`);
  if (process.env.UPDATE) {
    fs.mkdirSync(KEPT, { recursive: true });
    // A picture that still passes is not rewritten: a commit shows only what has changed.
    if (!fs.existsSync(file) || await difference(studio, fs.readFileSync(file), now)) fs.writeFileSync(file, now);
    return null;
  }
  const told = fs.existsSync(file) ? await difference(studio, fs.readFileSync(file), now) : 'no picture is kept';
  return told && `${name}: ${told}. It is ${path.join(shots, `${name}.png`)}; if it should look so, UPDATE=1 tests/browser/run keeps it`;
}
