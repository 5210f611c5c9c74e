'use strict';
// Timelines: packed ops (see timeline.go) on a canvas that zooms, moves and tells what an op or the gap before it is. Text only ever goes into
// textContent and onto the canvas.
(() => {
  const KINDS = { F: ['forward', '--c0'], B: ['backward', '--c1'], I: ['input gradient', '--c7'], W: ['weight gradient', '--c2'], R: ['reduce', '--c3'], U: ['update', '--c5'] };
  const LABEL = 44, LANE = 22, TITLE = 18, AXIS = 20;

  const seconds = s => s >= 1 ? s.toPrecision(4) + ' s' : s >= 1e-3 ? (s * 1e3).toPrecision(4) + ' ms' : (s * 1e6).toPrecision(3) + ' µs';

  function unpack(data) {
    const lanes = [];
    for (const g of data.groups || []) {
      for (const [row, l] of (g.lanes || []).entries()) {
        const n = l.k.length, start = new Float64Array(n), end = new Float64Array(n), peer = new Float64Array(n), move = new Float64Array(n);
        for (let i = 0, at = 0; i < n; i++) {
          start[i] = at + l.g[i]; at = end[i] = start[i] + l.d[i];
        }
        for (const [i, p, m] of l.w) { peer[i] = p; move[i] = m; }
        lanes.push({ group: g.name, row, label: l.label, k: l.k, m: l.m, s: l.s, start, end, peer, move, n });
      }
    }
    return { unit: data.unit, lanes };
  }

  function timeline(figure) {
    const canvas = figure.querySelector('canvas'), hint = figure.querySelector('.hint');
    const data = unpack(JSON.parse(figure.querySelector('script').textContent));
    const whole = Math.max(1, ...data.lanes.map(l => l.n ? l.end[l.n - 1] : 0));
    let from = 0, to = whole, chosen = null;
    // Where each lane is drawn.
    let y = 0, last = null;
    for (const l of data.lanes) {
      if (l.group !== last) { y += TITLE; l.title = y - 5; last = l.group; }
      l.y = y; y += LANE;
    }
    const height = y + AXIS;
    canvas.style.height = height + 'px';

    const ctx = canvas.getContext('2d');
    const width = () => canvas.clientWidth;
    const px = t => LABEL + (t - from) / (to - from) * (width() - LABEL);
    const time = x => from + (x - LABEL) / Math.max(1, width() - LABEL) * (to - from);
    const stage = (l, i) => l.s[Math.min(i, l.s.length - 1)];
    const name = (l, i) => l.k[i] === 'U' ? 'U' : stage(l, i) + l.k[i] + (l.k[i] === 'R' ? '' : l.m[i]);

    // first is the first op of a lane that ends after t.
    function first(l, t) {
      let lo = 0, hi = l.n;
      while (lo < hi) { const mid = (lo + hi) >> 1; if (l.end[mid] <= t) lo = mid + 1; else hi = mid; }
      return lo;
    }

    function draw() {
      const css = getComputedStyle(figure), colour = n => css.getPropertyValue(n).trim();
      const paint = {}; for (const k in KINDS) paint[k] = colour(KINDS[k][1]);
      const ink = colour('--ink'), soft = colour('--soft'), grid = colour('--grid'), wait = colour('--wait'), move = colour('--move'), paper = colour('--paper');
      const dpr = window.devicePixelRatio || 1, w = width();
      canvas.width = Math.round(w * dpr); canvas.height = Math.round(height * dpr);
      ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
      ctx.clearRect(0, 0, w, height);
      ctx.font = '11px system-ui, sans-serif'; ctx.textBaseline = 'middle';
      // The scale.
      const span = (to - from) * data.unit, raw = span / Math.max(2, Math.floor((w - LABEL) / 90)), ten = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map(f => f * ten).find(s => s >= raw);
      ctx.strokeStyle = grid; ctx.fillStyle = soft; ctx.textAlign = 'center';
      for (let t = Math.ceil(from * data.unit / step) * step; t <= to * data.unit * (1 + 1e-9); t += step) {
        const x = px(t / data.unit);
        ctx.beginPath(); ctx.moveTo(x, 0); ctx.lineTo(x, height - AXIS); ctx.stroke();
        if (x < w - 24) ctx.fillText(t < step / 2 ? '0' : seconds(t), x, height - 8);
      }
      for (const l of data.lanes) {
        if (l.title !== undefined) { ctx.textAlign = 'left'; ctx.fillStyle = ink; ctx.fillText(l.group, 2, l.title - 4); }
        ctx.textAlign = 'left'; ctx.fillStyle = soft; ctx.fillText(l.label, 2, l.y + LANE / 2);
      }
      ctx.save(); ctx.beginPath(); ctx.rect(LABEL, 0, w - LABEL, height); ctx.clip();
      for (const l of data.lanes) {
        let skip = -1; // ops that share a pixel with the one before are drawn once
        for (let i = Math.max(0, first(l, from) - 1); i < l.n; i++) {
          const a = px(l.start[i]), b = px(l.end[i]);
          if (a - (l.peer[i] + l.move[i]) / (to - from) * w > w) break;
          if (b < LABEL && l.k[i] !== 'R') continue;
          if (l.peer[i] + l.move[i] > 0) {
            const m = px(l.start[i] - l.move[i]), p = px(l.start[i] - l.move[i] - l.peer[i]);
            ctx.fillStyle = wait; ctx.fillRect(p, l.y + 5, m - p, LANE - 10);
            ctx.fillStyle = move; ctx.fillRect(m, l.y + 5, a - m, LANE - 10);
          }
          if (b < skip) continue;
          skip = Math.ceil(b * dpr) / dpr;
          const thin = l.k[i] === 'R';
          ctx.fillStyle = paint[l.k[i]] || soft;
          ctx.fillRect(a, thin ? l.y + LANE - 6 : l.y + 2, Math.max(b - a, .6), thin ? 4 : LANE - 4);
          if (b - a > 3) { ctx.fillStyle = paper; ctx.fillRect(b - .7, l.y + 2, .7, LANE - 4); }
          const text = name(l, i);
          if (!thin && b - a > 7 * text.length + 2) { ctx.fillStyle = '#111'; ctx.textAlign = 'center'; ctx.fillText(text, (Math.max(a, LABEL) + Math.min(b, w)) / 2, l.y + LANE / 2); }
        }
        if (chosen && chosen.lane === l) {
          const i = chosen.i, a = px(chosen.gap ? (i ? l.end[i - 1] : 0) : l.start[i]), b = px(chosen.gap ? l.start[i] : l.end[i]);
          ctx.strokeStyle = ink; ctx.lineWidth = 2; ctx.strokeRect(a, l.y + 1, Math.max(b - a, 1), LANE - 2); ctx.lineWidth = 1;
        }
      }
      ctx.restore();
      figure.dataset.from = from * data.unit; figure.dataset.to = to * data.unit;
    }

    function tell() {
      if (!chosen) return;
      const { lane: l, i, gap } = chosen, u = data.unit, where = l.group + ' ' + l.label + ': ';
      if (i >= l.n) { hint.textContent = where + 'nothing to do: its last op is done'; return; }
      if (!gap) {
        const k = KINDS[l.k[i]] || ['op'];
        hint.textContent = where + name(l, i) + ', ' + k[0] + (l.k[i] === 'U' ? '' : ' on stage ' + stage(l, i)) + (l.k[i] === 'R' || l.k[i] === 'U' ? '' : ' of microbatch ' + l.m[i]) +
          ', ' + seconds((l.end[i] - l.start[i]) * u) + ' from ' + seconds(l.start[i] * u) + (l.peer[i] + l.move[i] > 0 ? '; before it ' + idle(l, i) : '');
        return;
      }
      hint.textContent = where + 'idle before ' + name(l, i) + ': ' + idle(l, i);
    }

    // idle says why a rank did nothing before an op.
    function idle(l, i) {
      const u = data.unit, gap = Math.max(0, l.start[i] - (i ? l.end[i - 1] : 0)), parts = [];
      if (l.peer[i] > 0) parts.push(seconds(l.peer[i] * u) + ' waiting for peer');
      if (l.move[i] > 0) parts.push(seconds(l.move[i] * u) + ' transferring');
      const rest = gap - l.peer[i] - l.move[i];
      if (rest > 1 || !parts.length) parts.push(seconds(Math.max(rest, 0) * u) + (i ? ' nothing to do' : ' nothing to do yet'));
      return parts.join(', ');
    }

    function pick(x, yy) {
      const l = data.lanes.find(l => yy >= l.y && yy < l.y + LANE);
      if (!l || x < LABEL) return null;
      const t = time(x);
      let i = first(l, t);
      for (let j = Math.max(0, i - 2); j < Math.min(l.n, i + 3); j++) { // ops beside compute overlap others
        if (l.k[j] !== 'R' && l.start[j] <= t && t < l.end[j]) return { lane: l, i: j, gap: false };
      }
      while (i < l.n && l.k[i] === 'R' && i + 1 < l.n && l.start[i + 1] >= t) { if (l.start[i] <= t) return { lane: l, i, gap: false }; i++; }
      return { lane: l, i, gap: i >= l.n || l.start[i] > t };
    }

    function view(a, b) {
      const least = whole / 20000, len = Math.min(whole, Math.max(least, b - a));
      from = Math.min(Math.max(0, a), whole - len); to = from + len;
      draw();
    }
    const zoom = (f, x) => { const t = time(x); view(t - (t - from) * f, t + (to - t) * f); };
    const middle = () => (LABEL + width()) / 2;
    const choose = c => { chosen = c; tell(); draw(); };

    const pointers = new Map();
    let dragged = false;
    const at = e => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    canvas.addEventListener('pointerdown', e => { pointers.set(e.pointerId, at(e)); dragged = false; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener('pointermove', e => {
      const now = at(e), before = pointers.get(e.pointerId);
      if (!before) { const c = pick(...now); if (c && (!chosen || c.lane !== chosen.lane || c.i !== chosen.i || c.gap !== chosen.gap)) choose(c); return; }
      if (pointers.size === 1) {
        const dx = now[0] - before[0];
        if (Math.abs(dx) > 2) dragged = true;
        const dt = dx / (width() - LABEL) * (to - from);
        view(from - dt, to - dt);
      } else {
        const other = [...pointers].find(([id]) => id !== e.pointerId)[1], d0 = Math.abs(before[0] - other[0]), d1 = Math.abs(now[0] - other[0]);
        if (d0 > 8 && d1 > 8) zoom(d0 / d1, (now[0] + other[0]) / 2);
        dragged = true;
      }
      pointers.set(e.pointerId, now);
    });
    const up = e => { if (pointers.delete(e.pointerId) && !dragged) { const c = pick(...at(e)); if (c) choose(c); } };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', e => pointers.delete(e.pointerId));
    canvas.addEventListener('dblclick', e => zoom(.4, at(e)[0]));
    canvas.addEventListener('wheel', e => { if (e.ctrlKey || e.metaKey || e.shiftKey) { e.preventDefault(); zoom(Math.exp((e.deltaY || e.deltaX) / 300), at(e)[0]); } }, { passive: false });
    canvas.addEventListener('keydown', e => {
      const len = to - from;
      const keys = {
        ArrowLeft: () => view(from - len / 8, to - len / 8), ArrowRight: () => view(from + len / 8, to + len / 8),
        '+': () => zoom(.6, middle()), '=': () => zoom(.6, middle()), '-': () => zoom(1 / .6, middle()), '0': () => view(0, whole),
        '.': () => walk(1), ',': () => walk(-1), ArrowDown: () => lane(1), ArrowUp: () => lane(-1),
      };
      if (keys[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); keys[e.key](); }
    });
    function walk(d) {
      if (!data.lanes.length) return;
      const c = chosen || { lane: data.lanes[0], i: -1, gap: false };
      const i = Math.min(Math.max(0, c.gap && d > 0 ? c.i : c.i + d), c.lane.n - 1);
      const len = to - from;
      if (c.lane.start[i] < from || c.lane.end[i] > to) { const t = (c.lane.start[i] + c.lane.end[i]) / 2; from = Math.min(Math.max(0, t - len / 2), whole - len); to = from + len; }
      choose({ lane: c.lane, i, gap: false });
    }
    function lane(d) {
      const c = chosen || { lane: data.lanes[0], i: 0 }, l = data.lanes[Math.min(Math.max(0, data.lanes.indexOf(c.lane) + d), data.lanes.length - 1)];
      if (l) choose({ lane: l, i: Math.min(first(l, c.lane.n ? c.lane.start[Math.min(c.i, c.lane.n - 1)] : 0), l.n - 1), gap: false });
    }
    for (const b of figure.querySelectorAll('button')) {
      b.addEventListener('click', () => ({ in: () => zoom(.5, middle()), out: () => zoom(2, middle()), all: () => view(0, whole) })[b.dataset.do]());
    }
    new ResizeObserver(draw).observe(canvas);
    figure.redraw = draw;
    draw();
    // For whoever asks where an op is on the screen.
    figure.placeOf = (row, i) => { const l = data.lanes[row]; return [px((l.start[i] + l.end[i]) / 2), l.y + LANE / 2]; };
    figure.gapOf = (row, i) => { const l = data.lanes[row]; return [px(l.start[i] - (l.peer[i] + l.move[i]) / 2), l.y + LANE / 2]; };
  }

  function start(root) {
    for (const f of root.querySelectorAll('figure.timeline')) {
      try { timeline(f); } catch (e) { f.querySelector('.hint').textContent = 'this timeline cannot be shown: ' + e.message; }
    }
  }
  // One listener for all figures, those that come later too.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { for (const f of document.querySelectorAll('figure.timeline')) if (f.redraw) f.redraw(); });
  window.triax = { start };
  start(document);
  document.documentElement.dataset.drawn = Math.round(performance.now());
})();
