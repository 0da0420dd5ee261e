// Fuzzy search: all letters of the words in this order, better where they begin words or follow each other.

/**
 * Return the score of a text for a search (higher is better) and the places that match, or null.
 * @param {string} wanted words, lower case
 * @param {string} text
 * @returns {{score: number, places: number[]}|null}
 */
export function match(wanted, text) {
  const low = text.toLowerCase(), places = [];
  let score = 0;
  for (const word of wanted.split(/\s+/).filter(Boolean)) {
    const found = whole(word, low) ?? scattered(word, low);
    if (!found) return null;
    score += found.score;
    places.push(...found.places);
  }
  return { score: score - text.length / 100, places };
}

/** A word as it stands: best at the beginning of a name. */
function whole(word, text) {
  let best = null;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const score = 10 * word.length + (begins(text, at) ? 12 : 0) + (ends(text, at + word.length) ? 6 : 0);
    if (!best || score > best.score) best = { score, places: Array.from(word, (_, i) => at + i) };
  }
  return best;
}

function scattered(word, text) {
  const places = [];
  let score = 0, at = -1;
  for (const letter of word) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return null;
    score += next === at + 1 && at >= 0 ? 6 : begins(text, next) ? 5 : 1 - Math.min(3, (next - at) / 8);
    places.push(next);
    at = next;
  }
  return score > word.length * 1.6 ? { score, places } : null;
}

function begins(text, at) {
  return at === 0 || !/[a-z0-9]/.test(text[at - 1]);
}

function ends(text, at) {
  return at === text.length || !/[a-z0-9]/.test(text[at]);
}

/** Return the text with its matching letters in `mark` elements. */
export function marked(text, places) {
  const parts = document.createDocumentFragment(), set = new Set(places);
  for (let i = 0; i < text.length;) {
    const on = set.has(i);
    let j = i;
    while (j < text.length && set.has(j) === on) j += 1;
    const part = on ? document.createElement("mark") : document.createElement("span");
    part.textContent = text.slice(i, j);
    parts.append(part);
    i = j;
  }
  return parts;
}

/** Letters of a topic that are shown with its field: its number, or what it differs by from the topic beside it. */
const KEPT = 7;

/** Where the last part of a name begins, which is shown whole: its field with the end of its topic, or the last word of a topic. */
export function lastPart(text, topic = "") {
  if (topic && text.length > topic.length) return topic.length > 2 * KEPT ? topic.length - KEPT : 0;
  const place = Math.max(text.lastIndexOf("/"), text.lastIndexOf("."), text.lastIndexOf("_")) + 1;
  return place > 0 && place < text.length ? place : 0;
}

/** Return the elements of a name in two parts, of which the first is cut where there is no room, with its matches marked. */
export function nameParts(text, { topic = "", places = [] } = {}) {
  // A lone slash is no part: it has less room than a cut name needs.
  const place = lastPart(text, topic), at = place > 2 ? place : 0, parts = at ? [[0, at, "first"], [at, text.length, "last"]] : [[0, text.length, "last"]];
  return parts.map(([from, to, name]) => {
    const part = document.createElement("span");
    part.className = name;
    part.append(marked(text.slice(from, to), places.filter((place) => place >= from && place < to).map((place) => place - from)));
    return part;
  });
}

/** Return the best matches of a search: [{item, score, places}], best first. */
export function search(wanted, items, textOf, most = 200) {
  const words = wanted.toLowerCase().trim(), found = [];
  if (!words) return items.slice(0, most).map((item) => ({ item, score: 0, places: [] }));
  for (const item of items) {
    const hit = match(words, textOf(item));
    if (hit) found.push({ item, ...hit });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, most);
}
