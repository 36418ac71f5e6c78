// The pages work without this file. With it, forms marked data-live change the page in place, fields grow with what is
// typed in them, and Ctrl+Enter sends a form.
"use strict";

function grow(field) {
  field.rows = Math.min(12, Math.max(Number(field.dataset.rows || (field.dataset.rows = field.rows)),
    field.value.split("\n").length));
  while (field.scrollHeight > field.clientHeight + 2 && field.rows < 12) field.rows += 1;
}

function prepare(root) {
  root.querySelectorAll(".example textarea, .ask textarea").forEach(grow);
}

async function exchange(form, button) {
  const sent = new FormData(form, button);
  const body = form.enctype === "multipart/form-data" ? sent : new URLSearchParams(sent);
  const answer = await fetch(form.action, {method: "POST", body, credentials: "same-origin"});
  if (answer.redirected) {
    location.assign(answer.url);
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("main");
  if (!fresh) throw new Error("no page");
  document.title = page.title;
  document.getElementById("main").replaceWith(document.adoptNode(fresh));
  prepare(fresh);
  const target = fresh.querySelector("[role=alert], #answer, #next") || fresh;
  target.tabIndex = -1;
  target.focus({preventScroll: target === fresh});
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-live]") || event.defaultPrevented) return;
  event.preventDefault();
  const button = event.submitter;
  document.getElementById("main").setAttribute("aria-busy", "true");
  exchange(form, button).catch(() => (button && button.name ? form.requestSubmit.call(plain(form), button) : plain(form).submit()));
});

function plain(form) {
  form.removeAttribute("data-live");
  return form;
}

document.addEventListener("input", (event) => {
  if (event.target.matches(".example textarea, .ask textarea")) grow(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
    event.target.form.requestSubmit();
  }
});

prepare(document);
