"use strict";
// The elements of the page. Texts from the data only ever become text nodes or attribute values
// that hold text.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.flatMap(nodes));
  return element;
}

// A caption with pictures is { text, pictures }, the others are strings.
const words = (caption) => caption.text ?? caption;
const around = (caption, write) =>
  caption.pictures ? { ...caption, text: write(caption.text) } : write(caption);
const nodes = (child) => child.pictures ? [make("span", "pictured",
  ...child.pictures.flatMap(picture), make("span", "", child.text))] : [child];

// Pictures that would make the file too large are null.
function picture(number) {
  if (!data.pictures[number]) return [];
  const image = document.createElement("img");
  [image.src, image.width, image.height] = data.pictures[number];
  image.alt = "";
  image.className = "picture";
  return [image];
}

function table(header, rows, right = []) {
  const head = make("tr");
  header.forEach((name, column) => {
    const cell = make("th", right.includes(column) ? "number" : "", name);
    cell.scope = "col";
    head.append(cell);
  });
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    row.forEach((cell, column) => {
      const kind = right.includes(column) ? "number" : "";
      line.append(cell instanceof HTMLTableCellElement ? cell : make("td", kind, cell));
    });
    body.append(line);
  }
  return make("table", "", make("thead", "", head), body);
}

function scrolling(name, content) {
  const box = make("div", "scroll", content);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", name);
  return box;
}

function list(items) {
  return make("ul", "", ...items.map((item) => make("li", "", item)));
}

// Created once: that takes longer than writing all numbers.
const thousandsApart = new Intl.NumberFormat("en");
const count = (number) => thousandsApart.format(number);
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
