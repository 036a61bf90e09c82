// From the results of a search to the section that the words stand in, not to the top of the page.
window.addEventListener("load", () => {
  const words = [...document.querySelectorAll("article .highlighted")];
  if (location.hash || !words.length) return;
  const title = words.find((word) => word.closest("h2, h3, h4"));
  const section = (title ?? words[0]).closest("section");
  section?.querySelector("h1, h2, h3, h4")?.scrollIntoView({ block: "start" });
});
