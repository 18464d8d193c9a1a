// The share of the time in which each process had a call in flight, by layer,
// in the colour of the layer or of the process.

// Neighbours differ: hues follow each other by the golden angle.
const lineColour = (line) => `hsl(${((line * 137.508) % 360).toFixed(1)},70%,${colour("line-lightness")})`;

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
  const isByLine = () => figure.querySelector("input[name=timeline-colours]:checked").value === "line";
  const colours = () => {
    if (isByLine()) return (row) => lineColour(Math.floor(row / used.length));
    const ofLayers = used.map((layer) => colour(`layer-${layer}`));
    return (row) => ofLayers[row % used.length];
  };
  const plot = new Plot(figure.querySelector(".plot"), {
    ...cells, isDown: true, x: [0, span], y: [0, lines], height: Math.max(60, lines * used.length * rowPixels * 1.1),
    yTicks: (_, pixels) => namedTicks(data.lines.map((line) => line.name), (n) => n + 0.5, pixels / 15),
    paint: (context, of) => {
      const colourOf = colours();
      paintCells(context, of, shown, (_, row) => colourOf(row), rangeOf, full);
    },
  });
  tableOnDemand(figure, () =>
    table(["process", "layer", ...sliceHeads()],
          names.map(([line, layer], row) => [line.name, data.layers[layer], ...sliced(shown, row, (ns) => secondsText(ns / 1e9))]),
          "Time in calls, by eighths of the time"));
  const change = () => {
    figure.querySelector(".legend").hidden = isByLine();
    plot.draw();
  };
  for (const input of figure.querySelectorAll("input[name=timeline-colours]")) input.addEventListener("change", change);
  change();
}
