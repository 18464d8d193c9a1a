// A picture with axes: values on hover and by the arrow keys, zoom by keys, wheel, buttons and dragging. What is in it is
// its `spec` (see Plot).

const plots = [];

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
