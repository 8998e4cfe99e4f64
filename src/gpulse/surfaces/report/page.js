"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.runs) return;
  const STEPS = 1000; // of a chart's height, as the data is coded
  const LEFT = 52, RIGHT = 8, TOP = 6, FOOT = 18, ROW = 20;
  const whole = Math.max(1e-3, ...data.runs.map((run) => run.seconds + run.width));
  const view = { from: 0, to: whole };
  const off = new Set();
  const phases = [...new Set(data.phases.map((phase) => phase[2]))]; // each name has its tint
  let cursor = null;

  // Undo the coding: places to seconds, differences to values.
  for (const run of data.runs) {
    let place = 0;
    run.times = run.at.map((step) => Math.min(run.seconds, ((place += step) + 0.5) * run.width));
    run.broken = new Set(run.breaks);
  }
  for (const chart of data.charts) {
    const scale = (chart.high - chart.low) / STEPS;
    for (const line of chart.lines) {
      let before = 0;
      line.value = line.mean.map((step) => (step === null ? null : chart.low + (before += step) * scale));
      line.least = line.below ? line.value.map((value, at) => (value === null ? null : value - line.below[at] * scale)) : line.value;
      line.most = line.above ? line.value.map((value, at) => (value === null ? null : value + line.above[at] * scale)) : line.value;
      line.key = line.gpu ? `GPU ${line.gpu}` : data.runs.length > 1 ? line.name : "";
    }
  }

  // Words
  const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  function written(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "B" || unit === "B/s") {
      let step = 0;
      while (Math.abs(value) >= 1000 && step < 5) { value /= 1024; step += 1; }
      return `${value.toFixed(step && Math.abs(value) < 99.95 && value ? 1 : 0)} ${SIZES[step]}${unit.slice(1)}`;
    }
    if (unit) return `${value.toFixed(0)} ${unit}`;
    return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
  }
  function elapsed(seconds) {
    const all = Math.max(0, Math.floor(seconds)), two = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(all / 3600), minutes = Math.floor((all % 3600) / 60);
    return hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
  }
  const clock = (seconds) => `${new Date(seconds * 1000).toISOString().slice(11, 19)} UTC`;

  // Time to place and back
  let colours = {}; // looked up once a drawing
  const colour = (name) => (colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  const inner = (width) => Math.max(1, width - LEFT - RIGHT);
  const across = (time, width) => LEFT + ((time - view.from) / (view.to - view.from)) * inner(width);
  const timeAt = (x, width) => view.from + ((x - LEFT) / inner(width)) * (view.to - view.from);

  function ticks(from, to, most, sizes) {
    const raw = (to - from) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = sizes ? sizes.find((size) => size >= raw) || Math.ceil(raw / 86400) * 86400
      : power * [1, 2, 2.5, 5, 10].find((part) => part * power >= raw * 0.999);
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-6; at += step) found.push(at);
    return found;
  }
  const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const binary = (unit) => unit === "B" || unit === "B/s";
  function levels(chart) {
    if (!binary(chart.unit)) return ticks(chart.low, chart.high, 4);
    const unit = 1024 ** Math.floor(Math.log(Math.max(1, chart.high) * 1.024) / Math.log(1024));
    return ticks(chart.low / unit, chart.high / unit, 4).map((level) => level * unit);
  }

  function prepare(plot, height) {
    const canvas = plot.querySelector("canvas"), width = plot.clientWidth, dense = window.devicePixelRatio || 1;
    if (height) canvas.style.height = `${height}px`;
    const tall = height || canvas.clientHeight;
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(tall * dense);
    const pen = canvas.getContext("2d");
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    return { pen, width, tall };
  }
  function drawTimes(pen, width, tall, grid) {
    pen.textAlign = "center";
    for (const time of ticks(view.from, view.to, Math.max(2, inner(width) / 90), SECONDS)) {
      const x = Math.round(across(time, width)) + 0.5;
      if (grid) { pen.fillStyle = colour("--grid"); pen.fillRect(x - 0.5, TOP, 1, tall - TOP - FOOT); }
      pen.fillStyle = colour("--axis");
      if (x > LEFT - 4 && x < width - 14) pen.fillText(elapsed(time), x, tall - 4);
    }
  }
  function drawPhase(pen, [from, to, name], width, top, bottom, strength) {
    pen.globalAlpha = strength;
    pen.fillStyle = colour(`--c${phases.indexOf(name) % 8}`);
    pen.fillRect(across(from, width), top, Math.max(1, across(to, width) - across(from, width)), bottom - top);
    pen.globalAlpha = 1;
  }
  function drawNotes(pen, width, bottom) {
    for (const phase of data.phases) drawPhase(pen, phase, width, TOP, bottom, 0.07);
    for (const [time, severity] of data.notes) {
      if (time < view.from || time > view.to) continue;
      pen.strokeStyle = colour(`--${severity}`);
      pen.globalAlpha = 0.55;
      pen.setLineDash(severity === "mark" ? [3, 3] : [1, 2]);
      pen.beginPath();
      pen.moveTo(across(time, width), TOP);
      pen.lineTo(across(time, width), bottom);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // The stretches of a line without a gap, as [first, behind the last].
  function stretches(line, run) {
    const found = [];
    let first = null;
    for (let at = 0; at <= line.value.length; at += 1) {
      const ends = at === line.value.length || line.value[at] === null || run.broken.has(at);
      if (ends && first !== null) { found.push([first, at]); first = null; }
      if (at < line.value.length && line.value[at] !== null && first === null) first = at;
    }
    return found;
  }
  function drawLine(pen, line, run, x, y) {
    pen.strokeStyle = pen.fillStyle = colour(`--c${line.color % 8}`);
    pen.setLineDash(line.color >= 8 ? [4, 2] : []);
    for (const [first, end] of stretches(line, run)) {
      if (line.below) {
        pen.globalAlpha = 0.16;
        pen.beginPath();
        for (let at = first; at < end; at += 1) pen.lineTo(x(run.times[at]), y(line.most[at]));
        for (let at = end - 1; at >= first; at -= 1) pen.lineTo(x(run.times[at]), y(line.least[at]));
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.beginPath();
      for (let at = first; at < end; at += 1) pen.lineTo(x(run.times[at]), y(line.value[at]));
      if (end - first === 1) pen.arc(x(run.times[first]), y(line.value[first]), 1.2, 0, 7);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  function drawChart(figure, chart) {
    const { pen, width, tall } = prepare(figure.querySelector(".plot"));
    const bottom = tall - FOOT;
    const y = (value) => bottom - ((value - chart.low) / (chart.high - chart.low)) * (bottom - TOP);
    drawTimes(pen, width, tall, true);
    pen.textAlign = "right";
    for (const level of levels(chart)) {
      pen.fillStyle = colour("--grid");
      pen.fillRect(LEFT, Math.round(y(level)), inner(width), 1);
      pen.fillStyle = colour("--axis");
      pen.fillText(binary(chart.unit) ? written(level, "B").replace(/\.0 /, " ") : String(+level.toPrecision(6)), LEFT - 6, y(level) + 4);
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, inner(width), bottom + 1);
    pen.clip();
    drawNotes(pen, width, bottom);
    pen.lineWidth = 1.3;
    pen.lineJoin = "round";
    for (const line of chart.lines) if (!off.has(line.key)) drawLine(pen, line, data.runs[line.run], (time) => across(time, width), y);
    pen.restore();
  }

  function drawStrip(figure) {
    const named = data.phases.length ? ROW : 0;
    const { pen, width, tall } = prepare(figure.querySelector(".plot"), TOP + named + data.strips.length * ROW + FOOT);
    drawTimes(pen, width, tall, false);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, inner(width), tall - FOOT);
    pen.clip();
    data.strips.forEach((strip, row) => drawRow(pen, strip, TOP + named + row * ROW, width));
    pen.textAlign = "left";
    data.phases.forEach((phase) => {
      const [from, to, name] = phase, x = across(from, width), wide = across(to, width) - x;
      drawPhase(pen, phase, width, TOP, TOP + named - 4, 0.22);
      pen.fillStyle = colour("--ink");
      if (pen.measureText(name).width + 8 < wide) pen.fillText(name, x + 4, TOP + 12);
    });
    pen.restore();
    pen.textAlign = "right";
    pen.fillStyle = colour("--axis");
    if (named) pen.fillText("phase", LEFT - 6, TOP + 12);
    data.strips.forEach((strip, row) => pen.fillText(strip.name, LEFT - 6, TOP + named + row * ROW + 12));
  }
  function drawRow(pen, strip, top, width) {
    const chart = data.charts[strip.line[0]], line = chart.lines[strip.line[1]], run = data.runs[line.run];
    pen.fillStyle = colour("--track");
    pen.fillRect(LEFT, top, inner(width), ROW - 4);
    for (const [first, end] of stretches(line, run)) {
      for (let at = first; at < end; at += 1) {
        const from = at > first ? (run.times[at - 1] + run.times[at]) / 2 : run.times[at] - run.width / 2;
        const to = at + 1 < end ? (run.times[at] + run.times[at + 1]) / 2 : run.times[at] + run.width / 2;
        const x = Math.floor(across(from, width)), right = Math.ceil(across(to, width));
        if (right < LEFT || x > width) continue;
        pen.fillStyle = colour("--card"); // first the ground, so that neighbours that share a pixel do not add up; clearRect
        pen.fillRect(x, top, right - x, ROW - 4); // would also wipe the paper when printed
        pen.fillStyle = colour("--hot");
        pen.globalAlpha = 0.06 + 0.94 * Math.max(0, Math.min(1, line.value[at] / chart.high));
        pen.fillRect(x, top, right - x, ROW - 4);
        pen.globalAlpha = 1;
      }
    }
    for (const [from, to, severity] of strip.spans) {
      const x = across(from, width), wide = across(to, width) - x;
      pen.fillStyle = colour(`--${severity}`);
      if (wide > 3) pen.fillRect(x, top + ROW - 7, wide, 3);
      else pen.fillRect(x - 1, top, 2, ROW - 4);
    }
  }

  // The point of a run nearest to a time; null beyond its ends and within its gaps.
  function nearest(run, time) {
    let low = 0, high = run.times.length - 1;
    if (high < 0 || time < -run.width || time > run.seconds + run.width) return null;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (run.times[middle] <= time) low = middle; else high = middle;
    }
    const at = Math.abs(run.times[low] - time) <= Math.abs(run.times[high] - time) ? low : high;
    const gap = time > run.times[low] && time < run.times[high] && run.broken.has(high);
    return gap && Math.abs(run.times[at] - time) > run.width ? null : at;
  }
  function average(line, run) {
    let sum = 0, count = 0;
    line.value.forEach((value, at) => {
      if (value !== null && run.times[at] >= view.from && run.times[at] <= view.to) { sum += value; count += 1; }
    });
    return count ? sum / count : null;
  }
  function readout(figure, chart) {
    chart.lines.forEach((line) => {
      const item = line.item, run = data.runs[line.run];
      item.hidden = off.has(line.key);
      if (item.hidden) return;
      const at = cursor === null ? null : nearest(run, cursor);
      const value = cursor === null ? average(line, run) : at === null ? null : line.value[at];
      item.lastChild.textContent = written(value, chart.unit);
    });
  }

  const figures = [...document.querySelectorAll(".chart")].map((figure) => ({ figure, chart: data.charts[+figure.dataset.chart] }));
  const strip = document.querySelector(".strip");
  const plots = [...document.querySelectorAll(".plot")];
  const moment = document.querySelector(".moment"), all = document.querySelector(".whole");

  function swatch(color) {
    const square = document.createElement("span");
    square.className = "swatch";
    square.style.background = `var(--c${color % 8})`;
    return square;
  }
  function label(line) {
    return line.gpu ? line.gpu : line.name;
  }
  for (const { figure, chart } of figures) {
    figure.querySelector(".readout").classList.toggle("named", chart.lines.some((line) => label(line).length > 3));
    for (const line of chart.lines) {
      line.item = document.createElement("li");
      line.item.append(swatch(line.color), `${label(line)} `, document.createElement("b"));
      figure.querySelector(".readout").append(line.item);
    }
  }

  function draw() {
    colours = {};
    for (const { figure, chart } of figures) { drawChart(figure, chart); readout(figure, chart); }
    if (strip) drawStrip(strip);
    all.hidden = view.from === 0 && view.to === whole;
    point();
  }
  function point() {
    for (const plot of plots) {
      const inside = cursor !== null && cursor >= view.from && cursor <= view.to;
      plot.line.hidden = !inside;
      if (inside) plot.line.style.transform = `translateX(${across(cursor, plot.clientWidth)}px)`;
    }
    if (cursor === null) { moment.textContent = "Figures are means; point at a chart for a moment, drag to zoom."; return; }
    const phase = data.phases.find(([from, to]) => cursor >= from && cursor <= to);
    const reach = (view.to - view.from) / 150;
    const notes = data.notes.filter(([time]) => Math.abs(time - cursor) <= reach).slice(0, 2).map((note) => note[2]);
    const at = data.runs.length > 1 ? [] : [clock(data.runs[0].start + cursor)];
    moment.textContent = [elapsed(cursor), ...at, ...(phase ? [phase[2]] : []), ...notes].join(" · ");
  }
  function moveTo(time) {
    cursor = time === null ? null : Math.max(view.from, Math.min(view.to, time));
    for (const { figure, chart } of figures) readout(figure, chart);
    point();
  }
  function zoom(from, to) {
    view.from = Math.max(0, from);
    view.to = Math.min(whole, to);
    draw();
  }

  for (const plot of plots) {
    plot.line = Object.assign(document.createElement("div"), { className: "cursor", hidden: true });
    const brush = Object.assign(document.createElement("div"), { className: "zoom", hidden: true });
    plot.append(plot.line, brush);
    let began = null;
    const place = (event) => event.clientX - plot.getBoundingClientRect().left;
    const when = (event) => timeAt(Math.max(LEFT, Math.min(plot.clientWidth - RIGHT, place(event))), plot.clientWidth);
    plot.addEventListener("pointermove", (event) => {
      moveTo(when(event));
      if (began === null) return;
      const x = across(began, plot.clientWidth), other = across(cursor, plot.clientWidth);
      brush.hidden = Math.abs(other - x) < 6;
      brush.style.left = `${Math.min(x, other)}px`;
      brush.style.width = `${Math.abs(other - x)}px`;
    });
    plot.addEventListener("pointerdown", (event) => {
      moveTo(when(event));
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      began = when(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointerup", (event) => {
      const from = began, to = when(event);
      began = null;
      if (from !== null && !brush.hidden) zoom(Math.min(from, to), Math.max(from, to));
      brush.hidden = true;
    });
    plot.addEventListener("pointerleave", (event) => { if (began === null && event.pointerType === "mouse") moveTo(null); });
    plot.addEventListener("dblclick", () => zoom(0, whole));
    plot.addEventListener("keydown", (event) => {
      const step = (view.to - view.from) / (event.shiftKey ? 20 : 200);
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        event.preventDefault();
        moveTo((cursor === null ? view.from : cursor) + (event.key === "ArrowLeft" ? -step : step));
      } else if (event.key === "Escape") { moveTo(null); zoom(0, whole); }
    });
  }
  all.addEventListener("click", () => zoom(0, whole));

  const keys = new Map();
  for (const chart of data.charts) for (const line of chart.lines) if (line.key && !keys.has(line.key)) keys.set(line.key, line.color);
  if (keys.size > 1) {
    for (const [key, color] of keys) {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.setAttribute("aria-pressed", "true");
      button.append(swatch(color), key);
      button.addEventListener("click", () => {
        if (!off.delete(key)) off.add(key);
        button.setAttribute("aria-pressed", String(!off.has(key)));
        draw();
      });
      document.querySelector(".switches").append(button);
    }
  }

  new ResizeObserver(draw).observe(document.querySelector(".charts"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is white whatever the screen is.
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.print = "1"; draw(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.print; draw(); });
  draw();
})();
