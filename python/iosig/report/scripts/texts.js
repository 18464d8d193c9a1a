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
