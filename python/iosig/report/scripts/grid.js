// Grids of numbers, most of them 0, as the core encodes them in base64.

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
