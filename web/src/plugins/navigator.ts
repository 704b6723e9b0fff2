/** Navigation for code outside the component tree; the shell provides the function. */
type Navigator = (path: string) => void;

let navigator: Navigator = (path) => window.location.assign(path);

/** Set the function that navigates. */
export function setNavigator(way: Navigator): void {
  navigator = way;
}

/** Go to a page of the dashboard. */
export function navigate(path: string): void {
  navigator(path);
}
