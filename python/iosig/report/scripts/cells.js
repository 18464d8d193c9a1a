// Pictures of grids: what a Plot needs to show one.

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
