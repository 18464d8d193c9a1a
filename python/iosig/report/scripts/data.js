// What the page shows: grids and lists of accesses, each in base64, in the document's element #data (page.py).

const data = JSON.parse(document.getElementById("data").textContent);
const span = data.span_s;
