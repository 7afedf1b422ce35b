"use strict";
// One canvas a timeline: rows are drawn lane by lane, what is narrower than a pixel together with its neighbours.
(() => {
  const ROW = 18, AXIS = 22, LABEL = 13, BAND = 16;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function told(ns) {
    const size = Math.abs(ns);
    if (size >= 1e9) return (ns / 1e9).toFixed(6) + " s";
    if (size >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
    if (size >= 1e3) return (ns / 1e3).toFixed(3) + " µs";
    return Math.round(ns) + " ns";
  }

  function step(width) {
    const raw = width, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  }

  class Timeline {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.canvas = root.querySelector("canvas");
      this.line = root.querySelector(".told");
      this.search = root.querySelector("input");
      this.prefix = root.dataset.palette;
      this.tops = [];
      this.height = AXIS;
      this.data.rows.forEach((name) => {
        if (name) this.height += BAND;
        this.tops.push(this.height);
        this.height += ROW;
      });
      this.from = 0;
      this.to = this.data.span;
      this.hits = null;
      this.hit = -1;
      this.listen();
      this.draw();
    }

    listen() {
      const actions = { in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.show(0, this.data.span), next: () => this.next(1) };
      for (const button of this.root.querySelectorAll("button")) button.addEventListener("click", actions[button.dataset.do]);
      this.canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event));
      }, { passive: false });
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("pointerdown", (event) => { this.grabbed = { x: event.clientX, from: this.from, to: this.to, moved: false }; });
      this.canvas.addEventListener("pointermove", (event) => this.move(event));
      window.addEventListener("pointerup", () => { this.grabbed = null; });
      this.canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(event)));
      this.search.addEventListener("input", () => this.find());
      this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1); });
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    key(event) {
      const width = this.to - this.from;
      const moves = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.show(0, this.data.span),
        ArrowLeft: () => this.show(this.from - width / 5, this.to - width / 5), ArrowRight: () => this.show(this.from + width / 5, this.to + width / 5) };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    }

    time(event) {
      const box = this.canvas.getBoundingClientRect();
      return this.from + (event.clientX - box.left) / box.width * (this.to - this.from);
    }

    zoom(factor, around = (this.from + this.to) / 2) {
      this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }

    show(from, to) {
      const width = Math.min(Math.max(to - from, 20), this.data.span);
      this.from = Math.min(Math.max(from, 0), this.data.span - width);
      this.to = this.from + width;
      this.root.dataset.width = String(Math.round(width));
      this.draw();
    }

    move(event) {
      if (this.grabbed && event.buttons) {
        const width = this.grabbed.to - this.grabbed.from;
        const by = (this.grabbed.x - event.clientX) / this.canvas.getBoundingClientRect().width * width;
        this.show(this.grabbed.from + by, this.grabbed.to + by);
        return;
      }
      const found = this.at(event);
      this.line.textContent = found ? this.describe(found) : "";
    }

    at(event) {
      const y = event.clientY - this.canvas.getBoundingClientRect().top;
      const lane = this.data.lanes[this.tops.findIndex((top) => y >= top && y < top + ROW)];
      if (!lane) return null;
      const when = this.time(event), slack = (this.to - this.from) / this.canvas.getBoundingClientRect().width;
      const row = this.first(lane, when - slack);
      return row < lane.s.length && lane.s[row] <= when + slack ? { lane, row } : null;
    }

    describe({ lane, row }) {
      const { names, legend } = this.data;
      return `${names[lane.n[row]]} — ${told(lane.d[row])}, starts at ${told(lane.s[row])}, ${legend[lane.m[row]]}`;
    }

    first(lane, when) { // The first row that ends after a time; rows of a lane neither overlap nor go back.
      let low = 0, high = lane.s.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.s[middle] + lane.d[middle] < when) low = middle + 1; else high = middle;
      }
      return low;
    }

    find() {
      const text = this.search.value.toLowerCase();
      this.hits = text ? new Set(this.data.names.flatMap((name, place) => name.toLowerCase().includes(text) ? [place] : [])) : null;
      this.rows = [];
      if (this.hits) {
        for (const lane of this.data.lanes) lane.n.forEach((name, row) => { if (this.hits.has(name)) this.rows.push({ lane, row }); });
        this.rows.sort((a, b) => a.lane.s[a.row] - b.lane.s[b.row]);
      }
      this.hit = -1;
      const count = this.rows.length;
      this.line.textContent = this.hits ? `${count.toLocaleString("en")} ${count === 1 ? "row matches" : "rows match"}` : "";
      this.draw();
    }

    next(by) {
      if (!this.rows || !this.rows.length) return;
      this.hit = (this.hit + by + this.rows.length) % this.rows.length;
      const found = this.rows[this.hit], start = found.lane.s[found.row], length = Math.max(found.lane.d[found.row], 20);
      this.show(start - length * 2, start + length * 3);
      this.line.textContent = `${this.hit + 1} of ${this.rows.length.toLocaleString("en")}: ${this.describe(found)}`;
    }

    draw() {
      const box = this.canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
      const width = Math.max(box.width, 1), height = this.height + 2;
      this.canvas.style.height = height + "px";
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      const pen = this.canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.font = "11px system-ui, sans-serif";
      const look = { ink: colour("--ink"), line: colour("--line"), card: colour("--card"), accent: colour("--bad"), marks: [] };
      for (let at = 0; at < this.data.legend.length; at++) look.marks.push(colour(this.prefix === "h" ? `--m${at}` : `--c${at % 7 + 1}`));
      this.axis(pen, width, height, look);
      this.data.lanes.forEach((lane, place) => this.lane(pen, lane, this.tops[place], width, look));
      pen.fillStyle = look.ink;
      this.data.rows.forEach((name, place) => { if (name) pen.fillText(name, 2, this.tops[place] - 4); });
    }

    axis(pen, width, height, look) {
      const per = width / (this.to - this.from), size = step(110 / per);
      pen.strokeStyle = look.line;
      pen.fillStyle = look.ink;
      for (let at = Math.ceil(this.from / size) * size; at <= this.to; at += size) {
        const x = (at - this.from) * per;
        pen.beginPath();
        pen.moveTo(x, 16);
        pen.lineTo(x, height);
        pen.stroke();
        if (x < width - 60) pen.fillText(told(at), x + 3, 12);
      }
    }

    lane(pen, lane, top, width, look) {
      const per = width / (this.to - this.from);
      let last = -1;
      for (let row = this.first(lane, this.from); row < lane.s.length && lane.s[row] <= this.to; row++) {
        const left = Math.max((lane.s[row] - this.from) * per, 0);
        const right = Math.min((lane.s[row] + lane.d[row] - this.from) * per, width);
        const hit = this.hits && this.hits.has(lane.n[row]);
        if (right <= last && !hit) continue;
        const size = Math.max(right - left, 1);
        pen.globalAlpha = this.hits && !hit ? 0.25 : 1;
        pen.fillStyle = hit ? look.accent : look.marks[lane.m[row]];
        pen.fillRect(left, top + 1, size - (size > 3 ? 0.5 : 0), ROW - 3);
        last = Math.max(last, left + 1);
        if (size > 26) this.text(pen, this.data.names[lane.n[row]], left, top, size, look);
      }
      pen.globalAlpha = 1;
    }

    text(pen, name, left, top, size, look) {
      pen.save();
      pen.beginPath();
      pen.rect(left, top, size - 3, ROW);
      pen.clip();
      pen.fillStyle = look.card;
      pen.fillText(name, left + 4, top + LABEL);
      pen.restore();
    }
  }

  window.addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".timeline")) new Timeline(root);
    document.documentElement.dataset.ready = "true";
  });
})();
