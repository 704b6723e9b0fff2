/** How something outside the tree of components goes to another page; the shell says how. */
type Go = (path: string) => void;

let go: Go = (path) => window.location.assign(path);

/** From now on, go this way. */
export function goThrough(way: Go): void {
  go = way;
}

/** Go to a page of the dashboard. */
export function navigate(path: string): void {
  go(path);
}
