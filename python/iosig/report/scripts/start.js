// Draws the page, again when its width, its colours or the medium change, and follows links of findings.

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
