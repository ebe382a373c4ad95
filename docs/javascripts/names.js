// What Material makes after a page has loaded: tables that scroll get a stop for the keyboard, the search and buttons at blocks of code a name.
"use strict";
window.document$.subscribe(() => setTimeout(() => {
  document.querySelector("[role=dialog]")?.setAttribute("aria-label", "Search");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  document.querySelectorAll(".md-code__nav").forEach((nav, index) => nav.setAttribute("aria-label", `Code ${index + 1}`));
}, 50));
