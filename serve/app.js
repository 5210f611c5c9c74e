
// The live page. A layout is a list of "section.key=value" pairs; the fields write pairs, the server answers with pictures.
(() => {
  const $ = id => document.getElementById(id), begin = JSON.parse($('start').textContent), form = $('form');
  const SHARE = 32000, KEY = /^[a-z]+\.[a-z0-9_]+$/;
  let layouts = [], now = 0, values = [], shown = 'toml', searching = 0;

  const get = async (path, signal) => {
    const r = await fetch(path, { signal }), text = await r.text();
    let a;
    try { a = JSON.parse(text); } catch { a = { problems: [{ rule: text.slice(0, 200) }] }; } // the guard's refusals are plain
    if (!r.ok) throw Object.assign(new Error('refused'), { problems: a.problems || [] });
    return a;
  };
  const query = l => [...l.pairs].map(([k, v]) => encodeURIComponent(k) + '=' + encodeURIComponent(v)).join('&');
  const named = l => 'name=' + encodeURIComponent(l.name) + '&' + query(l);
  const layout = (name, text) => {
    const pairs = new Map();
    for (const [k, v] of new URLSearchParams(text)) if (KEY.test(k) && v.length < 1000) pairs.set(k, v);
    return { name: String(name).slice(0, 80), pairs, abort: null };
  };

  // The address: layouts with their names, and which is chosen.
  function write() {
    const text = layouts.map(l => encodeURIComponent(l.name) + ':' + query(l)).join(';') + ';at=' + now;
    $('copied').textContent = text.length < SHARE ? '' : 'the layouts are too long for a link';
    if (text.length < SHARE) history.replaceState(null, '', '#' + text);
  }
  function read() {
    const parts = location.hash.slice(1, SHARE).split(';').filter(Boolean), out = [];
    let at = 0;
    for (const p of parts) {
      if (p.startsWith('at=')) { at = parseInt(p.slice(3), 10) || 0; continue; }
      const i = p.indexOf(':');
      if (i < 0 || out.length >= begin.most) continue;
      let name = 'layout';
      try { name = decodeURIComponent(p.slice(0, i)); } catch { /* not ours: the name only */ }
      out.push(layout(name, p.slice(i + 1)));
    }
    if (out.length) layouts = out; else layouts = begin.layouts.map(l => layout(l.name, l.pairs));
    now = Math.min(Math.max(0, at), Math.max(0, layouts.length - 1));
    values = layouts.map(() => ({}));
  }

  const value = key => layouts[now].pairs.get(key) ?? (values[now] || {})[key] ?? '';
  const count = key => parseInt(value(key), 10) || 1;

  function tabs() {
    const nav = $('tabs');
    nav.textContent = '';
    const button = (text, label, f) => { const b = document.createElement('button'); b.type = 'button'; b.textContent = text; b.setAttribute('aria-label', label); b.addEventListener('click', f); nav.append(b); return b; };
    layouts.forEach((l, i) => button(l.name, 'Layout ' + l.name, () => { now = i; tabs(); fill(); refresh(); }).setAttribute('aria-pressed', i === now));
    if (layouts.length && layouts.length < begin.most) button('+', 'Add a copy to compare', () => {
      const l = layouts[now], name = 'BCD'[layouts.length - 1] || 'copy';
      layouts.push({ ...l, name, pairs: new Map(l.pairs), abort: null }); values.push({ ...values[now] });
      now = layouts.length - 1; tabs(); fill(); refresh(); table();
    });
    if (layouts.length > 1) button('−', 'Remove the chosen layout', () => {
      layouts.splice(now, 1); values.splice(now, 1); now = Math.max(0, now - 1); $('layouts').textContent = '';
      tabs(); fill(); all();
    });
    form.hidden = $('carry').hidden = !layouts.length;
  }

  // fill shows the chosen layout in the fields.
  function fill() {
    if (!layouts.length) return;
    for (const e of form.querySelectorAll('[data-key]')) {
      const v = value(e.dataset.key).replace(/^"|"$/g, '');
      if (e.type === 'checkbox') e.checked = v === 'true'; else if (e !== document.activeElement || e.tagName === 'SELECT') e.value = v;
    }
    for (const e of form.querySelectorAll('[data-for]')) {
      const stops = e.dataset.stops.split(' ').map(Number), n = parseInt(value(e.dataset.for), 10) || 0;
      if (n > 0 && !stops.includes(n)) { stops.push(n); stops.sort((a, b) => a - b); }
      e.stops = stops; e.max = stops.length - 1; e.value = Math.max(0, stops.indexOf(n)); e.setAttribute('aria-valuetext', String(n));
    }
    const known = new Set([...form.querySelectorAll('[data-key]')].map(e => e.dataset.key));
    if (document.activeElement !== $('other')) $('other').value = [...layouts[now].pairs].filter(([k]) => !known.has(k)).map(([k, v]) => k + '=' + v).join('\n');
  }

  const replicas = () => count('mesh.dp') * count('mesh.dp_replicate') * count('mesh.ep');

  // set changes a key; with the holds on, the data axis and the number of microbatches follow. What is held is that of the last layout that keeps the rules.
  function set(key, text) {
    const l = layouts[now];
    l.lost = [];
    if (text === '' || text === null) l.pairs.delete(key); else l.pairs.set(key, text);
    if (key === 'model.preset') for (const k of [...l.pairs.keys()]) if (k.startsWith('model.') && k !== key && k !== 'model.recompute') l.pairs.delete(k);
    if (key.startsWith('mesh.') && key !== 'mesh.dp' && key !== 'mesh.sequence_parallel' && $('hold-ranks').checked) {
      const rest = ['mesh.tp', 'mesh.pp', 'mesh.cp', 'mesh.ep', 'mesh.dp_replicate'].reduce((n, k) => n * count(k), 1);
      if (l.ranks % rest === 0) l.pairs.set('mesh.dp', String(l.ranks / rest));
      else l.lost.push(l.ranks + ' devices are no multiple of ' + rest + ', so their number changes');
    }
    if ((key.startsWith('mesh.') || key === 'train.batch') && $('hold-micro').checked) {
      const m = count('train.batch') / (replicas() * l.micro);
      if (Number.isInteger(m) && m > 0) l.pairs.set('pipeline.microbatches', String(m));
      else l.lost.push('microbatches of ' + l.micro + ' samples do not share out the batch, so their size changes');
    }
    if (key === 'pipeline.schedule') l.pairs.delete('pipeline.chunks');
    refresh();
  }

  function problems(list) {
    const box = $('problems');
    box.textContent = '';
    for (const p of list) {
      const line = document.createElement('p');
      line.textContent = (p.field ? p.field + (p.value ? ' = ' + p.value : '') + ': ' : '') + p.rule + (p.hint ? '; ' + p.hint : '');
      box.append(line);
    }
  }

  // put places a part of the page that the server wrote.
  function put(at, html) {
    let box = $('layouts').querySelector('[data-at="' + at + '"]');
    if (!box) { box = document.createElement('div'); box.dataset.at = at; $('layouts').append(box); }
    const open = box.querySelector('details[open]') !== null;
    box.innerHTML = html;
    box.classList.remove('stale');
    if (open) box.querySelector('details').open = true;
    window.triax.start(box);
    return box;
  }

  async function one(at) {
    const l = layouts[at], began = performance.now();
    if (l.abort) l.abort.abort();
    l.abort = new AbortController();
    try {
      const a = await get('api/plan?at=' + at + '&' + named(l), l.abort.signal);
      if (layouts[at] !== l) return false;
      document.documentElement.dataset.answer = (performance.now() - began).toFixed(1);
      values[at] = a.values;
      put(at, a.html);
      l.ok = true;
      if (at === now) {
        problems([]); fill();
        l.ranks = a.ranks; l.micro = count('train.batch') / (replicas() * count('pipeline.microbatches'));
        $('ranks').textContent = [a.ranks + ' devices', ...(l.lost || [])].join('; ');
      }
      document.documentElement.dataset.ms = (performance.now() - began).toFixed(1);
      document.documentElement.dataset.changes = 1 + Number(document.documentElement.dataset.changes || 0);
      return true;
    } catch (e) {
      if (e.name === 'AbortError') return false;
      l.ok = false;
      if (at === now) { problems(e.problems || [{ rule: 'the server does not answer: ' + e.message }]); fill(); }
      const box = $('layouts').querySelector('[data-at="' + at + '"]');
      if (box) box.classList.add('stale');
      return false;
    }
  }

  let later = 0;
  async function refresh() {
    if (!layouts.length) return;
    write();
    searching++;
    clearTimeout(later);
    const at = now;
    if (!await one(at)) return;
    table();
    later = setTimeout(() => { side(at); search(); carry(shown); }, 400);
  }
  async function all() { for (let i = 0; i < layouts.length; i++) await one(i); refresh(); }

  async function table() {
    const ok = layouts.filter(l => l.ok);
    if (ok.length < 2) { $('table').textContent = ''; return; }
    try { $('table').innerHTML = (await get('api/table?' + ok.map(l => 'l=' + encodeURIComponent(named(l))).join('&'))).html; } catch { /* the layout says it */ }
  }

  // side adds the scaling picture, which takes a dozen plans.
  async function side(at) {
    const l = layouts[at];
    try {
      const a = await get('api/scaling?' + query(l)), charts = $('layouts').querySelector('[data-at="' + at + '"] .charts');
      if (a.html && charts && layouts[at] === l && !charts.querySelector('[data-chart=scaling]')) charts.insertAdjacentHTML('beforeend', a.html);
    } catch { /* the layout says it */ }
  }

  // search asks for the front until it is done or a field changes.
  async function search() {
    const mine = ++searching, at = now;
    while (mine === searching) {
      let a;
      try { a = await get('api/front?' + query(layouts[at])); } catch (e) { $('found').hidden = true; return; }
      if (mine !== searching) return;
      const box = $('layouts').querySelector('[data-at="' + at + '"] .charts'), old = box && box.querySelector('[data-chart=front]');
      if (old) old.outerHTML = a.html; else if (box) box.insertAdjacentHTML('beforeend', a.html);
      choices(a.choices || []);
      document.documentElement.dataset.front = a.done ? 'done' : 'growing';
      if (a.done) return;
      await new Promise(f => setTimeout(f, 500));
    }
  }

  function choices(list) {
    const ul = $('choices'), active = document.activeElement && document.activeElement.dataset.pairs;
    ul.textContent = '';
    $('found').hidden = !list.length;
    for (const c of list) {
      const li = document.createElement('li'), b = document.createElement('button');
      b.type = 'button'; b.dataset.pairs = c.pairs;
      b.textContent = c.seconds + ' a step, ' + c.memory + ': ' + c.layout;
      b.addEventListener('click', () => { layouts[now].pairs = layout('', c.pairs).pairs; refresh(); });
      li.append(b); ul.append(li);
      if (c.pairs === active) b.focus();
    }
  }

  async function carry(to) {
    shown = to;
    for (const b of $('carry').querySelectorAll('[data-to]')) b.setAttribute('aria-pressed', b.dataset.to === to);
    try { $('text').textContent = (await get('api/export?to=' + to + '&' + query(layouts[now]))).text; } catch (e) {
      $('text').textContent = (e.problems || []).map(p => (p.field ? p.field + (p.value ? ' = ' + p.value : '') + ': ' : '') + p.rule + (p.hint ? '; ' + p.hint : '')).join('\n');
    }
  }
  async function copy(text, what) {
    try { await navigator.clipboard.writeText(text); $('copied').textContent = what + ' copied'; } catch { $('copied').textContent = 'the browser does not allow copying'; }
  }

  async function run(n, stamp) {
    const section = $('runs').children[n];
    let wait = 5000;
    try {
      const a = await get('api/run?n=' + n + '&stamp=' + encodeURIComponent(stamp));
      if (a.html) { section.innerHTML = a.html; window.triax.start(section); }
      stamp = a.stamp;
      if (a.html && !a.ended) wait = 2000;
    } catch (e) { section.textContent = begin.runs[n] + ': ' + (e.problems || [{ rule: e.message }]).map(p => (p.field || '') + ' ' + p.rule).join('; '); }
    setTimeout(() => run(n, stamp), wait);
  }

  form.addEventListener('submit', e => e.preventDefault());
  form.addEventListener('input', e => {
    const t = e.target;
    if (t.dataset.for) set(t.dataset.for, String(t.stops[Number(t.value)]));
    else if (t.dataset.key && t.type === 'checkbox') set(t.dataset.key, String(t.checked));
    else if (t.dataset.key) set(t.dataset.key, t.value);
  });
  $('other').addEventListener('change', () => {
    const l = layouts[now], known = new Set([...form.querySelectorAll('[data-key]')].map(e => e.dataset.key));
    for (const k of [...l.pairs.keys()]) if (!known.has(k)) l.pairs.delete(k);
    for (const line of $('other').value.split('\n')) { // a line that is no key with a value is refused by the server, under its own text
      const i = line.indexOf('='), key = (i < 0 ? line : line.slice(0, i)).trim();
      if (line.trim()) l.pairs.set(key, i < 0 ? '' : line.slice(i + 1).trim());
    }
    refresh();
  });
  for (const b of $('carry').querySelectorAll('[data-to]')) b.addEventListener('click', () => carry(b.dataset.to));
  $('copy').addEventListener('click', () => copy($('text').textContent, shown));
  $('share').addEventListener('click', () => copy(location.href, 'link'));
  window.addEventListener('hashchange', () => { read(); $('layouts').textContent = ''; tabs(); fill(); all(); });

  read(); tabs(); fill(); all();
  begin.runs.forEach((_, n) => { $('runs').append(document.createElement('section')); run(n, ''); });
})();
