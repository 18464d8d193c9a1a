// Bytes over time, by process or by file.

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
