/** Read the launch token from the URL and remove it from there. */
export function consumeLaunchToken(location: Location, history: History): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}
