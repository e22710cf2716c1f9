/** The state of the page is its address: #/view?name=value. Back, forward and links work. */

export type View = "uses" | "nearest" | "sentence" | "surprise" | "task";
export const VIEWS: View[] = ["uses", "nearest", "sentence", "surprise", "task"];

interface Route {
  view: View;
  params: Record<string, string>;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.find((name) => name === path) ?? "uses";
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

export const route: Route = $state(read());

addEventListener("hashchange", () => Object.assign(route, read()));

export function address(view: View, params: Record<string, string | undefined>): string {
  const kept = Object.entries(params).filter((pair): pair is [string, string] => !!pair[1]);
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** Show a view with these parameters, as a new entry of the history. */
export function open(view: View, params: Record<string, string | undefined>): void {
  history.pushState(null, "", address(view, params));
  Object.assign(route, read());
}

/** Change some parameters in place; undefined removes one. */
export function change(params: Record<string, string | undefined>): void {
  history.replaceState(null, "", address(route.view, { ...route.params, ...params }));
  Object.assign(route, read());
}
