export function Achievements() { return <p>…</p>; }
