// Which bytes of a file were accessed when: each access, or of many, cells of time and offset.

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
