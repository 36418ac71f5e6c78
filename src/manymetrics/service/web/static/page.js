// The pages work without this file. With it, forms marked data-live change the page in place, and Ctrl+Enter sends a form.
"use strict";

async function exchange(form, button) {
  const sent = new FormData(form, button);
  const body = form.enctype === "multipart/form-data" ? sent : new URLSearchParams(sent);
  const answer = await fetch(form.getAttribute("action"), {method: "POST", body, credentials: "same-origin"});
  if (answer.redirected) {
    location.assign(answer.url);
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("main");
  if (!fresh) throw new Error("no page");
  document.title = page.title;
  document.getElementById("main").replaceWith(document.adoptNode(fresh));
  const target = fresh.querySelector("[role=alert], #answer, #next") || fresh;
  target.tabIndex = -1;
  target.focus({preventScroll: target === fresh});
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-live]")) return;
  event.preventDefault();
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  exchange(form, event.submitter).catch(() => {
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
