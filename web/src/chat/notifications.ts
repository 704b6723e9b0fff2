/** Whether this browser shows a notification when an answer is ready; chosen by the user, per browser. */

const STORAGE_KEY = "hermes-notifications";

/** Whether the browser has notifications at all. */
export function canNotify(): boolean {
  return typeof Notification !== "undefined";
}

/** Whether notifications are on, and the browser still allows them. */
export function isNotifying(): boolean {
  try {
    return canNotify() && Notification.permission === "granted" && localStorage.getItem(STORAGE_KEY) === "on";
  } catch {
    return false; // storage is unavailable
  }
}

/** Enable or disable notifications; the browser asks for permission the first time. Whether they are enabled now. */
export async function setNotifying(isOn: boolean): Promise<boolean> {
  if (isOn && (await Notification.requestPermission()) !== "granted") return false;
  localStorage.setItem(STORAGE_KEY, isOn ? "on" : "off");
  return isOn;
}

/** Show a notification if they are on; a click opens the page. */
export function notify(title: string, body: string, tag: string | undefined): void {
  if (!isNotifying()) return;
  try {
    const notice = new Notification(title, { body, icon: "/icon-192.png", tag });
    notice.onclick = () => {
      window.focus();
      notice.close();
    };
  } catch {
    void setNotifying(false); // Chrome on Android has permissions, and makes none for pages
  }
}
