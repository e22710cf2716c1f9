"""Style sheet of the report page, for desktops, phones, dark mode and print."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1d1d1f; --soft: #5c5c63; --line: #d9d9de; --plate: #f5f5f7; --page: #fff;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececef; --soft: #a9a9b2; --line: #3b3b42; --plate: #232328; --page: #17171a; }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem;
  font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; }
.finding { font-size: 1.2rem; line-height: 1.45; margin: 0 0 1.5rem; }
.note { color: var(--soft); font-size: .9rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr));
  gap: .75rem 1.5rem; margin: 0; padding: 1rem; background: var(--plate); border-radius: .5rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .4rem; }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child { text-align: left; }
thead th { vertical-align: bottom; font-weight: 600; }
tbody th { font-weight: 400; white-space: normal; min-width: 8rem; }
small { color: var(--soft); font-size: .85rem; }
.plots { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); align-items: start; }
figure { margin: 0; }
figure img { display: block; width: 100%; height: auto; background: #fff; border-radius: .5rem;
  border: 1px solid var(--line); padding: .4rem; }
figcaption { font-size: .9rem; color: var(--soft); padding-top: .4rem; }
figcaption strong { color: var(--ink); }
summary { cursor: pointer; padding: .3rem 0; }
pre { background: var(--plate); padding: .75rem 1rem; border-radius: .5rem; overflow-x: auto;
  white-space: pre-wrap; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --plate: #fff; --page: #fff;
    color-scheme: light; }
  body { font-size: 10pt; max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
