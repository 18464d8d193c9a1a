// The numbers of a picture as a table, made when it is opened.

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
