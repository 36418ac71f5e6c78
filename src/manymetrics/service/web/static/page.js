// The pages work without this script. With it, forms marked data-live replace the content in place, and Ctrl+Enter sends a form.
"use strict";

async function sendLive(form, button) {
  const data = new FormData(form, button);
  const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  const response = await fetch(form.getAttribute("action"), {method: "POST", body, credentials: "same-origin"});
  if (response.redirected) {
    location.assign(response.url);
    return;
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = page.getElementById("main");
  if (!main) throw new Error("the response is not a page");
  document.title = page.title;
  document.getElementById("main").replaceWith(document.adoptNode(main));
  const target = main.querySelector("[role=alert], #answer, #next") || main;
  target.tabIndex = -1;
  target.focus({preventScroll: target === main});
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-live]")) return;
  event.preventDefault();
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  sendLive(form, event.submitter).catch(() => {
    main.removeAttribute("aria-busy");
    form.removeAttribute("data-live");
    form.requestSubmit(event.submitter);
  });
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
    event.target.form.requestSubmit();
  }
});
