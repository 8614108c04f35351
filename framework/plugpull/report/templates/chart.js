// Zoomable timelines beside the drawn ones: one small uPlot per disk, all on one time axis. Nothing here is needed to read the report.
(function () {
  "use strict";
  const element = document.getElementById("data");
  let all = element.dataset.packing ? null : JSON.parse(element.textContent);
  const keys = all ? Object.keys(all) : "DecompressionStream" in window ? element.dataset.keys.split(" ") : [];
  const body = document.body;
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  let made = 0;
  body.classList.remove("no-js");

  // The numbers of long runs are compressed, and unpacked when they are needed first.
  function unpacked(then) {
    if (all) { then(); return; }
    const text = atob(element.textContent), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(element.dataset.packing));
    new Response(stream).text().then(function (found) { all = JSON.parse(found); then(); });
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function hatched(ctx) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour("--cut");
    pen.globalAlpha = 0.5;
    pen.beginPath();
    pen.moveTo(-2, 6); pen.lineTo(6, -2); pen.moveTo(2, 10); pen.lineTo(10, 2);
    pen.stroke();
    return ctx.createPattern(tile, "repeat");
  }

  function columns(data) {
    let at = 0;
    const x = data.x.map(function (step) { at += step; return at / 1000; });
    const rates = function (packed, top) {
      return x.map(function (_, i) {
        const high = packed ? digits.indexOf(packed[2 * i]) : -1;
        return high < 0 ? null : (64 * high + digits.indexOf(packed[2 * i + 1])) * top / 4095;
      });
    };
    return data.disks.map(function (disk) { return [x, rates(disk.w, disk.top), rates(disk.r, disk.top)]; });
  }

  // Cuts are shaded under the curves; the kernel's warnings and errors are ticks along the floor.
  function shade(data, disk) {
    return function (u) {
      const ctx = u.ctx, box = u.bbox;
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.left, box.top, box.width, box.height);
      ctx.clip();
      data.cuts.forEach(function (cut) {
        const from = u.valToPos(cut[0], "x", true), to = Math.max(u.valToPos(cut[1], "x", true), from + 1);
        ctx.fillStyle = colour("--shade");
        ctx.fillRect(from, box.top, to - from, box.height);
        ctx.fillStyle = hatched(ctx);
        ctx.fillRect(from, box.top, to - from, box.height);
        ctx.fillStyle = colour("--cut");
        ctx.fillRect(from, box.top, 1, box.height);
        ctx.fillRect(to - 1, box.top, 1, box.height);
      });
      (data.faults || []).forEach(function (at) {
        ctx.strokeStyle = colour("--cut");
        ctx.setLineDash([2, 3]);
        ctx.beginPath();
        ctx.moveTo(u.valToPos(at, "x", true), box.top);
        ctx.lineTo(u.valToPos(at, "x", true), box.top + box.height);
        ctx.stroke();
      });
      disk.absent.forEach(function (gap) {
        const from = u.valToPos(gap[0], "x", true), to = u.valToPos(gap[1], "x", true);
        ctx.fillStyle = colour("--absent");
        ctx.fillRect(from, box.top, to - from, box.height);
        ctx.strokeStyle = colour("--faint");
        ctx.setLineDash([3, 2]);
        ctx.strokeRect(from, box.top + 0.5, to - from, box.height - 1);
        if (to - from > 50) {
          ctx.fillStyle = colour("--soft");
          ctx.textAlign = "center";
          ctx.textBaseline = "middle";
          ctx.fillText("absent", (from + to) / 2, box.top + box.height / 2);
        }
      });
      data.kernel.forEach(function (line) {
        ctx.fillStyle = colour(line[1] <= 3 ? "--fail" : "--unknown");
        const high = line[1] <= 3 ? 8 : 4;
        ctx.fillRect(u.valToPos(line[0], "x", true) - 1, box.top + box.height - high, 2, high);
      });
      ctx.restore();
    };
  }

  function axis(show, extra) {
    return Object.assign({
      show: show, font: "11px system-ui, sans-serif", stroke: function () { return colour("--soft"); },
      grid: { stroke: function () { return colour("--grid"); }, width: 1 }, ticks: { show: false }
    }, extra);
  }

  function plot(host, readout, data, disk, values, key, last) {
    const curve = { spanGaps: false, points: { show: false }, width: 1.3 };
    const shown = function (v) { return v == null ? "–" : v.toFixed(1) + " MB/s"; };
    const options = {
      width: Math.max(host.clientWidth, 320), height: last ? 88 : 66, padding: [7, 18, last ? 0 : 7, 0], legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, sync: { key: key, scales: ["x", null] }, points: { size: 5 } },
      scales: { x: { time: false, min: 0, max: data.end }, y: { range: [0, disk.top] } },
      axes: [
        axis(last, { size: 24, values: function (u, ticks) { return ticks.map(function (t) { return +t.toFixed(6) + " s"; }); } }),
        axis(true, { size: 34, gap: 4, splits: function () { return [0, disk.top]; } })
      ],
      series: [
        {},
        Object.assign({ label: "write", stroke: function () { return colour("--write"); }, fill: function () { return colour("--area") + "b8"; } }, curve),
        Object.assign({ label: "read", stroke: function () { return colour("--read"); } }, curve)
      ],
      hooks: {
        drawClear: [shade(data, disk)],
        setCursor: [function (u) {
          const i = u.cursor.idx;
          readout.textContent = i == null ? disk.role
            : u.data[0][i].toFixed(2) + " s\n" + (disk.w ? "write " + shown(values[1][i]) : "") + (disk.r ? (disk.w ? "\n" : "") + "read " + shown(values[2][i]) : "");
        }]
      }
    };
    made += 1;
    body.dataset.charts = made;
    return new uPlot(options, values, host);
  }

  function build(figure) {
    const data = all[figure.dataset.key], values = columns(data), zoomed = figure.querySelector(".zoomed");
    const hint = document.createElement("p");
    hint.className = "zhint";
    hint.textContent = "Drag to zoom all disks, double-click to see everything again.";
    zoomed.append(hint);
    return data.disks.map(function (disk, index) {
      const row = document.createElement("div"), who = document.createElement("div"), host = document.createElement("div"), readout = document.createElement("span");
      row.className = "zdisk";
      who.className = "who";
      who.textContent = disk.name;
      readout.textContent = disk.role;
      who.append(readout);
      row.append(who, host);
      zoomed.append(row);
      return plot(host, readout, data, disk, values[index], figure.dataset.key, index === data.disks.length - 1);
    });
  }

  function toggle(figure, button) {
    const drawn = figure.querySelector(".drawn"), zoomed = figure.querySelector(".zoomed");
    const zoom = zoomed.hidden;
    zoomed.hidden = !zoom;
    drawn.hidden = zoom;
    button.textContent = zoom ? "Drawing" : "Zoom";
    button.setAttribute("aria-pressed", String(zoom));
    if (zoom && !figure.plots) unpacked(function () { figure.plots = figure.plots || build(figure); });
  }

  const openAll = /\b(all|zoom)\b/.test(location.hash), zoomAll = /\bzoom\b/.test(location.hash);
  if (openAll) document.querySelectorAll("details").forEach(function (part) { part.open = true; });
  body.dataset.charts = 0;
  document.querySelectorAll("figure.chart").forEach(function (figure) {
    if (!keys.includes(figure.dataset.key)) return;
    const button = figure.querySelector("button.zoom");
    button.hidden = false;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", function () { toggle(figure, button); });
    if (zoomAll) toggle(figure, button);
  });

  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", function () {
    document.querySelectorAll("details.scenario").forEach(function (part) { part.open = true; });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.querySelectorAll("figure.chart").forEach(function (figure) {
      (figure.plots || []).forEach(function (u) { u.redraw(); });
    });
  });
  body.dataset.height = document.documentElement.scrollHeight;
  body.dataset.opened = Math.round(performance.now());
})();
