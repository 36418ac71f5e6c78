"use strict";
// Sorting by a click on a column's head; without this script the tables stand in the order of the experiment.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.classList.contains("strips")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && !head.classList.contains("text")
        || head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? "";
      const rows = [...body.rows].sort((one, other) => {
        const left = value(one), right = value(other);
        if (left === "" || right === "") return (left === "") - (right === "");
        const order = isNaN(left) || isNaN(right) ? left.localeCompare(right) : left - right;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
