// The pictures of a report: canvases that show values on hover and by the arrow keys, and zoom.
//
// The document has the numbers in #data: grids and lists of accesses, each in base64. Tables that do not change are in
// the HTML; those of many rows are made when they are opened.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const span = data.span_s;
  const plots = [];

  // Numbers as text, as the iosig command writes them.
  const digits = (value) => (value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3))));
  function bytesText(bytes) {
    const units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let unit = 0;
    for (; bytes >= 1024 && unit < 6; ++unit) bytes /= 1024;
    return `${digits(bytes)} ${units[unit]}`;
  }
  function secondsText(seconds) {
    const size = Math.abs(seconds);
    if (size === 0) return "0 s";
    if (size < 1e-6) return `${digits(seconds * 1e9)} ns`;
    if (size < 1e-3) return `${digits(seconds * 1e6)} µs`;
    if (size < 1) return `${digits(seconds * 1e3)} ms`;
    if (size < 120) return `${digits(seconds)} s`;
    return size < 7200 ? `${digits(seconds / 60)} min` : `${digits(seconds / 3600)} h`;
  }
  // A time with as many digits as tell it from its neighbours at `step`, in a unit that fits times up to `most`.
  function timeText(seconds, step, most = span) {
    const [unit, factor] = most < 1e-6 ? ["ns", 1e9] : most < 1e-3 ? ["µs", 1e6] : most < 1 ? ["ms", 1e3] : ["s", 1];
    const places = Math.max(0, -Math.floor(Math.log10(step * factor * 1.0000001)));
    return `${(seconds * factor).toFixed(places)} ${unit}`;
  }

  function bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let n = 0; n < text.length; ++n) bytes[n] = text.charCodeAt(n);
    return bytes;
  }

  // The cells of a grid that are not 0, in order: `places` (row * columns + column) and `amounts`.
  class Grid {
    constructor(columns, rows, places, amounts) {
      Object.assign(this, { columns, rows, places, amounts, most: 0, least: Infinity });
      for (const amount of amounts) {
        if (amount > this.most) this.most = amount;
        if (amount < this.least) this.least = amount;
      }
    }
    // As core/iosig/observe/grid.h encodes it.
    static decoded({ columns, rows, cells }) {
      const bytes = bytesOf(cells), places = [], amounts = [];
      let at = 0;
      const number = () => {
        let value = 0;
        for (let scale = 1; ; scale *= 128) {
          const byte = bytes[at++];
          value += (byte & 127) * scale;
          if (byte < 128) return value;
        }
      };
      for (let cell = 0; at < bytes.length; ++cell) {
        cell += number();
        places.push(cell);
        amounts.push(number());
      }
      return new Grid(columns, rows, places, amounts);
    }
    // The sum of two grids of one shape; `ways` has 1 where only `a` has an amount, 2 where only `b` has, else 3.
    static sum(a, b) {
      const places = [], amounts = [], ways = [];
      for (let n = 0, m = 0; n < a.places.length || m < b.places.length;) {
        const one = a.places[n] ?? Infinity, other = b.places[m] ?? Infinity, place = Math.min(one, other);
        places.push(place);
        ways.push((one === place ? 1 : 0) + (other === place ? 2 : 0));
        amounts.push((one === place ? a.amounts[n++] : 0) + (other === place ? b.amounts[m++] : 0));
      }
      return Object.assign(new Grid(a.columns, a.rows, places, amounts), { ways });
    }
    // The number of the first cell that is not 0 and not before `place`.
    find(place) {
      let low = 0, high = this.places.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.places[middle] < place) low = middle + 1;
        else high = middle;
      }
      return low;
    }
    at(column, row) {
      const place = row * this.columns + column, n = this.find(place);
      return this.places[n] === place ? this.amounts[n] : 0;
    }
    // The nearest cell in the row that is not empty, from `column` on in the direction of `step`.
    next(column, row, step) {
      const place = row * this.columns + column, n = step > 0 ? this.find(place + 1) : this.find(place) - 1;
      const found = this.places[n];
      return found !== undefined && Math.floor(found / this.columns) === row ? found % this.columns : column;
    }
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // Where ticks are: multiples of a round step, or for bytes of a power of two.
  function ticksOf(from, to, most, isBytes) {
    const rough = (to - from) / Math.max(1, most);
    if (!(rough > 0)) return { at: [from], step: 1 };
    let step;
    if (isBytes) {
      step = Math.max(1, 2 ** Math.ceil(Math.log2(rough)));
    } else {
      const power = 10 ** Math.floor(Math.log10(rough));
      step = [1, 2, 5, 10].find((each) => each * power >= rough * 0.999) * power;
    }
    const at = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to * (1 + 1e-12); ++n) at.push(n * step);
    return { at, step };
  }

  // A picture with a time axis. `spec`:
  //   x, y: the ranges [from, to]; height: of the axes, in pixels; isDown: y grows downwards
  //   yTicks(view, pixels): [{at, text}]; paint(context, plot): draws into the axes
  //   near(x, y, plot): what is there, {box: [x0, y0, x1, y1], text}, or null; step(item, dx, dy): its neighbour
  //   label: of the y axis
  class Plot {
    constructor(host, spec) {
      this.host = host;
      this.spec = spec;
      this.canvas = host.querySelector("canvas");
      this.readout = host.parentElement.querySelector(".readout");
      this.readout.textContent = this.hint = "Point at the picture, or focus it and use the arrow keys.";
      this.item = null;
      this.reset();
      this.listen();
      plots.push(this);
    }
    reset() {
      this.view = { x: [...this.spec.x], y: [...this.spec.y] };
    }
    toX(value) {
      const [from, to] = this.view.x;
      return this.left + ((value - from) / (to - from)) * this.width;
    }
    toY(value) {
      const [from, to] = this.view.y;
      const share = (value - from) / (to - from);
      return this.top + (this.spec.isDown ? share : 1 - share) * this.spec.height;
    }
    fromX(pixel) {
      const [from, to] = this.view.x;
      return from + ((pixel - this.left) / this.width) * (to - from);
    }
    fromY(pixel) {
      const [from, to] = this.view.y;
      const share = (pixel - this.top) / this.spec.height;
      return from + (this.spec.isDown ? share : 1 - share) * (to - from);
    }
    draw() {
      const total = this.host.clientWidth;
      if (total === 0) return;
      const scale = Math.max(window.devicePixelRatio || 1, document.documentElement.classList.contains("print") ? 2 : 1);
      const context = this.canvas.getContext("2d");
      context.font = '12px system-ui, "Liberation Sans", sans-serif';
      const ticks = this.spec.yTicks(this.view.y, this.spec.height);
      const widest = Math.max(20, ...ticks.map((tick) => context.measureText(tick.text).width));
      this.left = Math.min(widest + 12, total / 2.5);
      this.top = 8;
      this.width = Math.max(40, total - this.left - 14);
      const height = this.top + this.spec.height + 40;
      this.canvas.width = Math.round(total * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.height = `${height}px`;
      context.scale(scale, scale);
      context.font = '12px system-ui, "Liberation Sans", sans-serif';
      this.axes(context, ticks);
      context.save();
      context.beginPath();
      context.rect(this.left, this.top, this.width, this.spec.height);
      context.clip();
      this.spec.paint(context, this);
      if (this.item) this.mark(context, this.item.box, "ink", 2);
      if (this.drag) this.mark(context, this.drag, "ink", 1);
      context.restore();
    }
    mark(context, [x0, y0, x1, y1], name, width) {
      const left = this.toX(Math.min(x0, x1)), right = this.toX(Math.max(x0, x1));
      const above = Math.min(this.toY(y0), this.toY(y1)), below = Math.max(this.toY(y0), this.toY(y1));
      context.strokeStyle = colour(name);
      context.lineWidth = width;
      context.strokeRect(left - 2, above - 2, Math.max(right - left, 2) + 4, Math.max(below - above, 2) + 4);
    }
    axes(context, yTicks) {
      const bottom = this.top + this.spec.height;
      context.fillStyle = colour("plot");
      context.fillRect(this.left, this.top, this.width, this.spec.height);
      context.strokeStyle = colour("line");
      context.lineWidth = 1;
      context.fillStyle = colour("soft");
      context.textBaseline = "middle";
      context.textAlign = "right";
      for (const tick of yTicks) {
        const y = this.toY(tick.at);
        if (!tick.isBare) this.stroke(context, this.left, y, this.left + this.width, y);
        this.fitted(context, tick.text, this.left - 6, Math.min(Math.max(y, this.top + 5), bottom - 3), this.left - 8);
      }
      const { at, step } = ticksOf(...this.view.x, Math.max(3, this.width / 95), false);
      context.textBaseline = "top";
      for (const time of at) {
        const x = this.toX(time);
        this.stroke(context, x, this.top, x, bottom + 4);
        const text = timeText(time, step, this.view.x[1]), half = context.measureText(text).width / 2;
        context.textAlign = "left";
        context.fillText(text, Math.min(x - half, this.left + this.width + 12 - 2 * half), bottom + 7);
      }
      context.textAlign = "center";
      context.fillText("time since the first call", this.left + this.width / 2, bottom + 24);
    }
    // Long names lose their middle.
    fitted(context, text, x, y, room) {
      let shown = text;
      for (let kept = text.length - 1; context.measureText(shown).width > room && kept > 4; --kept)
        shown = `${text.slice(0, kept >> 1)}…${text.slice(text.length - (kept >> 1))}`;
      context.fillText(shown, x, y);
    }
    stroke(context, x0, y0, x1, y1) {
      context.beginPath();
      context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
      context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
      context.stroke();
    }
    show(item) {
      this.item = item;
      this.readout.textContent = item ? item.text : this.hint;
      this.draw();
    }
    // Zooms by a factor around a point of the picture.
    zoom(factor, x, y) {
      const { view, spec } = this;
      for (const [axis, around] of [["x", x], ["y", y]]) {
        const [low, high] = spec[axis];
        if (axis === "y" && spec.isDown) continue;
        const size = Math.min(high - low, Math.max((view[axis][1] - view[axis][0]) * factor, (high - low) * 1e-7));
        const share = (around - view[axis][0]) / (view[axis][1] - view[axis][0]);
        const from = Math.min(Math.max(around - share * size, low), high - size);
        view[axis] = [from, from + size];
      }
      this.draw();
    }
    zoomAtCentre(factor) {
      const box = this.item?.box;
      const middle = (range) => (range[0] + range[1]) / 2;
      const within = (value, range) => (value >= range[0] && value <= range[1] ? value : middle(range));
      this.zoom(factor, within(box ? box[0] : NaN, this.view.x), within(box ? box[1] : NaN, this.view.y));
    }
    pan(dx, dy) {
      for (const [axis, by] of [["x", dx], ["y", dy]]) {
        const [low, high] = this.spec[axis], [from, to] = this.view[axis];
        const size = to - from;
        const moved = Math.min(Math.max(from + by * size, low), high - size);
        this.view[axis] = [moved, moved + size];
      }
      this.draw();
    }
    // Shows a range of time, as links from findings ask for.
    look(from, to) {
      const [low, high] = this.spec.x, rest = Math.max((to - from) * 0.1, (high - low) * 1e-6);
      this.view.x = [Math.max(low, from - rest), Math.min(high, to + rest)];
      this.view.y = [...this.spec.y];
      this.draw();
    }
    listen() {
      const { host } = this;
      const place = (event) => {
        const box = this.canvas.getBoundingClientRect();
        return [this.fromX(event.clientX - box.left), this.fromY(event.clientY - box.top)];
      };
      host.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        if (this.drag) {
          this.drag = [this.drag[0], this.drag[1], x, this.spec.isDown ? this.view.y[1] : y];
          this.draw();
        } else if (event.pointerType !== "touch") {
          this.show(this.spec.near(x, y, this));
        }
      });
      host.addEventListener("pointerleave", () => {
        if (!this.drag && document.activeElement !== host) this.show(null);
      });
      host.addEventListener("pointerdown", (event) => {
        const [x, y] = place(event);
        if (event.pointerType === "touch") return this.show(this.spec.near(x, y, this));
        if (event.button !== 0) return undefined;
        host.setPointerCapture(event.pointerId);
        this.drag = [x, this.spec.isDown ? this.view.y[0] : y, x, y];
        return undefined;
      });
      host.addEventListener("pointerup", () => {
        const drag = this.drag;
        this.drag = null;
        if (!drag) return;
        const width = Math.abs(this.toX(drag[2]) - this.toX(drag[0]));
        const height = Math.abs(this.toY(drag[3]) - this.toY(drag[1]));
        const within = (range, a, b) => [Math.max(range[0], Math.min(a, b)), Math.min(range[1], Math.max(a, b))];
        if (width > 6) {
          this.view.x = within(this.spec.x, drag[0], drag[2]);
          if (height > 6 && !this.spec.isDown) this.view.y = within(this.spec.y, drag[1], drag[3]);
        }
        this.draw();
      });
      host.addEventListener("dblclick", () => {
        this.reset();
        this.draw();
      });
      host.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && document.activeElement !== host) return;  // the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, ...place(event));
      }, { passive: false });
      host.addEventListener("keydown", (event) => this.key(event));
      for (const button of host.parentElement.querySelectorAll("button[data-zoom]"))
        button.addEventListener("click", () => {
          if (button.dataset.zoom === "0") this.reset();
          this.zoomAtCentre(Number(button.dataset.zoom) || 1);
        });
    }
    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const arrow = arrows[event.key];
      if (arrow && event.shiftKey) this.pan(arrow[0] / 4, (this.spec.isDown ? -arrow[1] : arrow[1]) / 4);
      else if (arrow) this.move(...arrow);
      else if (event.key === "+" || event.key === "=") this.zoomAtCentre(0.5);
      else if (event.key === "-") this.zoomAtCentre(2);
      else if (event.key === "0" || event.key === "Home" || event.key === "Escape") {
        this.reset();
        this.show(event.key === "Escape" ? null : this.item);
      } else return;
      event.preventDefault();
    }
    move(dx, dy) {
      const { view, spec } = this;
      const item = this.item ? spec.step(this.item, dx, spec.isDown ? -dy : dy) : spec.first(this);
      if (!item) return;
      const [x, y] = item.box;
      for (const [axis, value] of [["x", x], ["y", y]]) {
        const size = view[axis][1] - view[axis][0];
        if (value < view[axis][0] || value > view[axis][1]) {
          const from = Math.min(Math.max(value - size / 2, spec[axis][0]), spec[axis][1] - size);
          view[axis] = [from, from + size];
        }
      }
      this.show(item);
    }
  }

  // Cells as rectangles, the stronger the more: on a logarithmic scale, or a linear one from 0 to `full(row)`.
  // `colourOf`: of cell number n, in that row.
  function paintCells(context, plot, grid, colourOf, rangeOf, full) {
    const width = (plot.spec.x[1] - plot.spec.x[0]) / grid.columns;
    const pixels = (width / (plot.view.x[1] - plot.view.x[0])) * plot.width;
    const range = Math.log(grid.most / grid.least), batches = new Map();
    for (let n = 0; n < grid.places.length; ++n) {
      const row = Math.floor(grid.places[n] / grid.columns), amount = grid.amounts[n];
      const share = full ? Math.min(1, amount / full(row)) : range > 0 ? Math.log(amount / grid.least) / range : 1;
      const key = `${colourOf(n, row)} ${(0.22 + (0.78 * Math.floor(share * 15)) / 15).toFixed(2)}`;
      if (!batches.has(key)) batches.set(key, []);
      batches.get(key).push(grid.places[n]);
    }
    for (const [key, places] of batches) {
      [context.fillStyle, context.globalAlpha] = key.split(" ");
      for (const place of places) {
        const [low, high] = rangeOf(Math.floor(place / grid.columns));
        const x = plot.toX(plot.spec.x[0] + (place % grid.columns) * width);
        if (x > plot.left + plot.width || x + pixels < plot.left) continue;
        const a = plot.toY(low), b = plot.toY(high);
        const left = Math.round(x), above = Math.round(Math.min(a, b));  // whole pixels leave no seams
        context.fillRect(left, above, Math.max(Math.round(x + pixels) - left, 1), Math.max(Math.round(Math.max(a, b)) - above, 1));
      }
    }
    context.globalAlpha = 1;
  }

  // Rows with names: of as many as have room.
  function namedTicks(names, centre, most) {
    const every = Math.max(1, Math.ceil(names.length / Math.max(1, most)));
    return names.flatMap((text, n) => (n % every === 0 ? [{ at: centre(n), text, isBare: true }] : []));
  }
  // The time of a column of a grid that covers `range`.
  const timesOf = (column, columns, [from, to] = [0, span]) => {
    const width = (to - from) / columns;
    return `${timeText(from + column * width, width)} to ${timeText(from + (column + 1) * width, width)}`;
  };

  // Methods of a plot whose items are cells of grids; `text(column, row)` tells what is in one.
  function cellSpec(grid, text, rangeOf, rows, [from, to] = [0, span]) {
    const width = (to - from) / grid.columns;
    const item = (column, row) => {
      const [low, high] = rangeOf(row);
      return { column, row, box: [from + column * width, low, from + (column + 1) * width, high], text: text(column, row) };
    };
    const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);
    return {
      item,
      near: (x, y) =>
        x < from || x > to || y < 0 || y > rows[1]
          ? null
          : item(clamp(Math.floor((x - from) / width), grid.columns), clamp(rows[0](y), grid.rows)),
      step: (last, dx, dy) => {
        const row = clamp(last.row + dy, grid.rows);
        return item(dx ? grid.next(last.column, row, dx) : last.column, row);
      },
      first: () => {
        const cell = grid.places[0];
        return cell === undefined ? null : item(cell % grid.columns, Math.floor(cell / grid.columns));
      },
    };
  }

  function table(heads, rows, caption) {
    const made = document.createElement("table");
    const add = (parent, name, text) => {
      const child = parent.appendChild(document.createElement(name));
      if (text !== undefined) child.textContent = text;
      return child;
    };
    add(made, "caption", caption);
    const head = add(add(made, "thead"), "tr");
    for (const each of heads) add(head, "th", each).scope = "col";
    const body = add(made, "tbody");
    for (const row of rows) {
      const line = add(body, "tr");
      row.forEach((each, n) => {
        const cell = add(line, n === 0 ? "th" : "td", each);
        if (n === 0) cell.scope = "row";
        else cell.className = "number";
      });
    }
    return made;
  }
  // Fills the <details> of a figure when it is opened.
  function tableOnDemand(figure, make) {
    const details = figure.querySelector("details[data-table]");
    details?.addEventListener("toggle", () => {
      if (details.open) details.querySelector(".scroll").replaceChildren(make());
    });
  }
  const slices = 8;
  function sliced(grid, row, text) {
    const sums = new Array(slices).fill(0);
    for (let column = 0; column < grid.columns; ++column)
      sums[Math.floor((column * slices) / grid.columns)] += grid.at(column, row);
    return sums.map(text);
  }
  const sliceHeads = ([from, to] = [0, span]) =>
    Array.from({ length: slices }, (_, n) => `from ${timeText(from + (n * (to - from)) / slices, (to - from) / slices)}`);

  function timeline() {
    const figure = document.getElementById("timeline-figure");
    if (!figure) return;
    const busy = Grid.decoded(data.busy), count = data.layers.length, used = data.used_layers;
    const names = data.lines.flatMap((line) => used.map((layer) => [line, layer]));
    // Only layers that have calls get rows.
    const places = [], amounts = [];
    busy.places.forEach((place, n) => {
      const row = Math.floor(place / busy.columns), layer = used.indexOf(row % count);
      if (layer < 0) return;
      places.push((Math.floor(row / count) * used.length + layer) * busy.columns + (place % busy.columns));
      amounts.push(busy.amounts[n]);
    });
    const shown = new Grid(busy.columns, names.length, places, amounts);
    const full = (row) => (span * 1e9 * names[row][0].processes) / busy.columns;
    const rangeOf = (row) => {
      const line = Math.floor(row / used.length), at = row % used.length, part = 0.9 / used.length;
      return [line + 0.05 + at * part, line + 0.05 + (at + 0.94) * part];
    };
    const text = (column, row) =>
      `${names[row][0].name}, ${data.layers[names[row][1]]}, ${timesOf(column, busy.columns)}: ` +
      `busy ${digits(Math.min(100, (100 * shown.at(column, row)) / full(row)))} % of the time`;
    const lines = data.lines.length;
    const cells = cellSpec(shown, text, rangeOf, [
      (y) => Math.floor(y) * used.length + Math.min(used.length - 1, Math.floor(((y % 1) - 0.05) / (0.9 / used.length))),
      lines,
    ]);
    const rowPixels = Math.min(Math.max(440 / (lines * used.length), 4), 14);
    const plot = new Plot(figure.querySelector(".plot"), {
      ...cells, isDown: true, x: [0, span], y: [0, lines], height: Math.max(60, lines * used.length * rowPixels * 1.1),
      yTicks: (_, pixels) => namedTicks(data.lines.map((line) => line.name), (n) => n + 0.5, pixels / 15),
      paint: (context, of) => {
        const colours = used.map((layer) => colour(`layer-${layer}`));
        paintCells(context, of, shown, (_, row) => colours[row % colours.length], rangeOf, full);
      },
    });
    tableOnDemand(figure, () =>
      table(["process", "layer", ...sliceHeads()],
            names.map(([line, layer], row) => [line.name, data.layers[layer], ...sliced(shown, row, (ns) => secondsText(ns / 1e9))]),
            "Time in calls, by eighths of the time"));
    plot.draw();
  }

  function heat() {
    const figure = document.getElementById("heat-figure");
    if (!figure) return;
    const kinds = {};
    for (const [kind, of] of [["line", data.by_line], ["file", data.by_file]]) {
      const read = Grid.decoded(of.read), written = Grid.decoded(of.written);
      kinds[kind] = { read, written, all: Grid.sum(read, written) };
    }
    const names = { line: data.lines.map((each) => each.name), file: data.plotted.map((each) => each.name) };
    const value = (name) => figure.querySelector(`input[name=${name}]:checked`).value;
    const rangeOf = (row) => [row + 0.04, row + 0.96];
    let plot = null;
    const change = () => {
      const rows = value("heat-rows"), bytes = value("heat-bytes"), of = kinds[rows], grid = of[bytes];
      const text = (column, row) =>
        `${names[rows][row]}, ${timesOf(column, grid.columns)}: ${bytesText(of.read.at(column, row))} read, ` +
        `${bytesText(of.written.at(column, row))} written`;
      const height = Math.max(60, names[rows].length * Math.min(Math.max(440 / names[rows].length, 6), 24));
      const spec = {
        ...cellSpec(grid, text, rangeOf, [Math.floor, names[rows].length]), isDown: true, x: [0, span],
        y: [0, names[rows].length], height,
        yTicks: (_, pixels) => namedTicks(names[rows], (n) => n + 0.5, pixels / 15),
        paint: (context, own) => {
          const of_bytes = colour(bytes === "all" ? "both" : bytes);
          paintCells(context, own, grid, () => of_bytes, rangeOf);
        },
      };
      figure.querySelector(".heat-most").textContent = grid.most
        ? `The stronger, the more, on a logarithmic scale; the greatest cell has ${bytesText(grid.most)}.` : "No bytes were moved this way.";
      if (!plot) plot = new Plot(figure.querySelector(".plot"), spec);
      plot.spec = spec;
      plot.reset();
      plot.show(null);
    };
    for (const input of figure.querySelectorAll("input")) input.addEventListener("change", change);
    tableOnDemand(figure, () => {
      const rows = value("heat-rows");
      return table(["", ...sliceHeads()], names[rows].map((name, row) => [name, ...sliced(kinds[rows].all, row, bytesText)]),
                   "Bytes read and written, by eighths of the time");
    });
    change();
  }

  const byteTicks = (view, pixels) => {
    const { at, step } = ticksOf(...view, Math.max(2, pixels / 34), true);
    return at.map((offset) => ({ at: offset, text: step < 1024 && view[1] >= 1024 ? `${offset.toLocaleString("en")} B` : bytesText(offset) }));
  };
  const exact = (number) => number.toLocaleString("en");

  // Each access as a rectangle from its start to its end and from its first to its last byte.
  function listSpec(file) {
    const numbers = new Float64Array(bytesOf(file.list).buffer), size = file.count;
    const [start, end, offset, bytes, line, isWrite] = Array.from({ length: 6 }, (_, n) => numbers.subarray(n * size, (n + 1) * size));
    const item = (n) => ({
      n,
      box: [start[n], offset[n], end[n], offset[n] + bytes[n]],
      text: `${n + 1} of ${size}: ${isWrite[n] ? "write" : "read"} of ${exact(bytes[n])} bytes at offset ${exact(offset[n])}, ` +
            `${data.lines[line[n]].name}, at ${timeText(start[n], span / 1e5)}, took ${secondsText(end[n] - start[n])}`,
    });
    return {
      first: (plot) => {
        let n = start.findIndex((time) => time >= plot.view.x[0]);
        return item(n < 0 ? 0 : n);
      },
      near: (x, y, plot) => {
        let best = -1, least = 24 ** 2;
        for (let n = 0; n < size; ++n) {
          const away = (value, low, high) => Math.max(low - value, value - high, 0);
          const dx = (away(x, start[n], end[n]) / (plot.view.x[1] - plot.view.x[0])) * plot.width;
          const dy = (away(y, offset[n], offset[n] + bytes[n]) / (plot.view.y[1] - plot.view.y[0])) * plot.spec.height;
          if (dx * dx + dy * dy < least) [best, least] = [n, dx * dx + dy * dy];
        }
        return best < 0 ? null : item(best);
      },
      step: (from, dx, dy) => item(Math.min(Math.max(from.n + dx + 10 * dy, 0), size - 1)),
      paint: (context, plot) => {
        const colours = [colour("read"), colour("written")];
        for (let n = 0; n < size; ++n) {
          const left = plot.toX(start[n]), above = plot.toY(offset[n] + bytes[n]);
          context.fillStyle = colours[isWrite[n]];
          context.fillRect(left, above, Math.max(plot.toX(end[n]) - left, 2), Math.max(plot.toY(offset[n]) - above, 2));
        }
      },
      rows: () => ({
        heads: ["access", "kind", "process", "start", "duration", "offset", "bytes"],
        rows: Array.from({ length: size }, (_, n) => [n + 1, isWrite[n] ? "write" : "read", data.lines[line[n]].name,
          timeText(start[n], span / 1e5), secondsText(end[n] - start[n]), exact(offset[n]), exact(bytes[n])]),
        caption: "Every access, in the order of their starts",
      }),
    };
  }

  // Bytes by cells of time and offset.
  function rasterSpec(file) {
    const read = Grid.decoded(file.read), written = Grid.decoded(file.written), all = Grid.sum(read, written);
    const rangeOf = (row) => [row * file.bytes_per_row, (row + 1) * file.bytes_per_row];
    const text = (column, row) =>
      `offsets ${bytesText(rangeOf(row)[0])} to ${bytesText(rangeOf(row)[1])}, ${timesOf(column, all.columns, file.time)}: ` +
      `${bytesText(read.at(column, row))} read, ${bytesText(written.at(column, row))} written`;
    return {
      ...cellSpec(all, text, rangeOf, [(y) => Math.floor(y / file.bytes_per_row), file.end_bytes], file.time),
      paint: (context, plot) => {
        const colours = [null, colour("read"), colour("written"), colour("both")];
        paintCells(context, plot, all, (n) => colours[all.ways[n]], rangeOf);
      },
      rows: () => {
        const parts = 8, rows = [];
        for (let part = 0; part < parts; ++part) {
          const from = Math.floor((part * all.rows) / parts), to = Math.floor(((part + 1) * all.rows) / parts);
          if (from * file.bytes_per_row >= file.end_bytes) break;
          const sums = new Array(slices).fill(0);
          for (let row = from; row < to; ++row) sliced(all, row, (amount) => amount).forEach((amount, n) => (sums[n] += amount));
          rows.push([`from ${bytesText(from * file.bytes_per_row)}`, ...sums.map(bytesText)]);
        }
        return { heads: ["offset", ...sliceHeads(file.time)], rows, caption: "Bytes read and written, by offset and time" };
      },
    };
  }

  // Makes the picture of a file, once.
  function plotFile(number) {
    const file = data.plotted[number], figure = document.getElementById(`file-${number}`);
    if (!figure || figure.plot) return figure?.plot;
    const spec = file.count > 0 ? listSpec(file) : rasterSpec(file);
    figure.plot = new Plot(figure.querySelector(".plot"), {
      ...spec, x: file.time, y: [0, file.end_bytes], height: 220, yTicks: byteTicks,
    });
    tableOnDemand(figure, () => {
      const { heads, rows, caption } = spec.rows();
      return table(heads, rows, caption);
    });
    figure.plot.draw();
    return figure.plot;
  }
  const plotAll = () => data.plotted.forEach((_, number) => plotFile(number));

  // Pictures of files are made when they are near the window: those that are at the start, at once.
  const margin = 600;
  const nearWindow = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        nearWindow.unobserve(entry.target);
        plotFile(Number(entry.target.id.slice("file-".length)));
      }
  }, { rootMargin: `${margin}px` });
  const drawFiles = () => {
    for (const figure of document.querySelectorAll("figure[id^=file-]"))
      if (figure.getBoundingClientRect().top < window.innerHeight + margin) plotFile(Number(figure.id.slice("file-".length)));
      else nearWindow.observe(figure);
  };

  // Links of findings show the time that they are about.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-from]");
    if (!link) return;
    const plot = plotFile(Number(link.getAttribute("href").slice("#file-".length)));
    if (!plot) return;
    plot.look(Number(link.dataset.from), Number(link.dataset.to));
    plot.host.focus({ preventScroll: true });
  });

  timeline();
  heat();
  drawFiles();

  const drawAll = () => plots.forEach((plot) => plot.draw());
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) requestAnimationFrame(drawAll);
    width = window.innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white.
  const print = (isPrinting) => {
    document.documentElement.classList.toggle("print", isPrinting);
    if (isPrinting) plotAll();
    drawAll();
  };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.drawnMs = performance.now().toFixed(0);  // since the navigation began; for tests
})();
