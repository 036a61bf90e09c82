// From the results of a search to the section that the words stand in, not to the top of the page.
(() => {
  const KEPT = "course-search";
  const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#search-results li a");
    if (link && !link.hash) localStorage.setItem(KEPT, new URLSearchParams(location.search).get("q") ?? "");
  });

  window.addEventListener("load", () => {
    if (document.querySelector("#search-results")) return;
    const words = wordsOf(localStorage.getItem(KEPT) ?? "");
    localStorage.removeItem(KEPT);
    if (location.hash || !words.length) return;
    let [best, most] = [null, 0];
    for (const section of document.querySelectorAll("article section[id]")) {
      const own = [...section.children].filter((child) => child.tagName !== "SECTION");
      const text = own.map((child) => child.textContent).join(" ").toLowerCase();
      const title = own[0]?.textContent.toLowerCase() ?? "";
      const found = words.filter((word) => text.includes(word)).length + words.filter((word) => title.includes(word)).length;
      if (found > most) [best, most] = [section, found];
    }
    best?.scrollIntoView({ block: "start", behavior: "instant" });
  });
})();
