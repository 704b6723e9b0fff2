/** The launch token of the address, once: it is taken out of the address before anything else happens. */
export function consumeLaunchToken(location: Location, history: History): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}
