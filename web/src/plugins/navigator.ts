/** How something outside the tree of components goes to another page; the shell says how. */
type Navigator = (path: string) => void;

let navigator: Navigator = (path) => window.location.assign(path);

/** From now on, go this way. */
export function setNavigator(way: Navigator): void {
  navigator = way;
}

/** Go to a page of the dashboard. */
export function navigate(path: string): void {
  navigator(path);
}
