"use strict";
// Keys and live updates. Every page works without this script.
const $ = (selector, where = document) => where.querySelector(selector);
const ask = document.body.dataset.ask;

// The token of a login link is in the fragment: it never reaches a log. A person presses the button.
if ($("#code") && location.hash.length > 1) {
  $("#code").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  $("#login button").focus();
} else if ($("#continue")) {
  // A strict cookie is not sent with the click that led here from elsewhere; it is with this request
  fetch($("#continue").href, { redirect: "manual" }).then((answer) => {
    if (answer.ok) location.replace($("#continue").href);
  });
}

document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && inField) return inField.blur();
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || inField) return;
  const rows = [...document.querySelectorAll("a.ask")];
  const step = { j: 1, k: -1 }[event.key];
  const found = step && rows.length
    ? rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(document.activeElement) + step))]
    : $(`[data-key="${CSS.escape(event.key)}"]:not([hidden]):not(:disabled)`);
  if (!found) return;
  event.preventDefault();
  if (!found.matches("summary")) found.closest("details")?.setAttribute("open", "");
  if (step || found.matches("input, textarea, select")) found.focus();
  else found.click();
});

// A form is sent once, however often its button is pressed
document.addEventListener("submit", (event) => {
  if (event.target.dataset.sent) event.preventDefault();
  else if (event.target.method === "post") event.target.dataset.sent = "1";
});
addEventListener("pageshow", () => document.forms.length && [...document.forms].forEach((form) => delete form.dataset.sent));

// Events have ids and states, never HTML. What changed is read again from our own pages.
function lock(happened) {
  const notice = $("#settled");
  document.querySelectorAll("#act button, #act textarea, #act input").forEach((each) => (each.disabled = true));
  notice.textContent = `It was ${happened.state} by ${happened.by} just now.`;
  notice.hidden = false;
}
async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const picked = [...document.querySelectorAll("#list input:checked")].map((each) => each.value);
  const focused = document.activeElement?.getAttribute("href");
  $("#list").replaceWith($("#list", fresh));
  document.title = fresh.title;
  $("header nav").replaceWith($("header nav", fresh));
  picked.forEach((id) => { const box = $(`#list input[value="${CSS.escape(id)}"]`); if (box) box.checked = true; });
  if (focused) $(`#list a[href="${CSS.escape(focused)}"]`)?.focus();
}
let stream, place = document.body.dataset.live, planned;
function follow() {
  stream = new EventSource(`/live?after=${encodeURIComponent(place)}`);
  stream.addEventListener("ask", (event) => {
    place = event.lastEventId;
    const happened = JSON.parse(event.data);
    if (ask && happened.ask === ask && happened.state) lock(happened);
    if ($("#list")) { clearTimeout(planned); planned = setTimeout(refresh, 20); }
  });
}
if (place !== undefined) {
  follow();
  // A browser has six connections for all tabs of a site: a hidden one leaves its own to others
  document.addEventListener("visibilitychange", () => { stream.close(); if (!document.hidden) follow(); });
}
