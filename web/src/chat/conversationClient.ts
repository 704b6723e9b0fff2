/** A conversation with the agent over a connection that reconnects automatically, without React. */
import { fetchChecked } from "@/api/client";
import {
  type AgentQuestion,
  type ApprovalAnswer,
  addNote,
  applyEvent,
  type Conversation,
  EMPTY_CONVERSATION,
  type OpenedSession,
  openConversation,
  reopenConversation,
} from "./conversationState";
import { type Attachment, EMPTY_DRAFT } from "./drafts";
import { emptyFolder, noteEmpty } from "./emptyConversations";
import { RpcClient, RpcError, type RpcEvent, type RpcRequest, type RpcState, type SessionRequest } from "./rpc";
import { beforeLastPrompt } from "./turns";

/** How a message is sent during a turn: to that turn, or after it. */
export type SendMode = "steer" | "queue";

/** Whether a text is a slash command. */
export const isCommand = (text: string) => text.startsWith("/") && !text.includes("\n");

/** A working folder for the agent; the home folder must be confirmed. */
export interface WorkingFolder {
  cwd: string;
  accept_home: boolean;
}

/** What a page shows of the client; a new object after each change. */
export interface ClientSnapshot {
  state: Conversation;
  connection: RpcState;
  problem: Error | null;
  /** `count` changes when the user opens another conversation, not when this one moves to another id. */
  opened: { count: number; id: string | undefined };
}

const NOT_STORED = 4007; // what the server answers for a conversation that it does not have
const NOT_CONNECTED = "Not connected to the server yet. Try again.";
const IS_GONE = "Not connected to the server. Try again when it is back.";

export class ConversationClient {
  /** Receives the id of the conversation, and whether another one was open before. */
  onMoved: (storedId: string, isOther: boolean) => void = () => {};
  /** Where the first message creates a conversation. */
  folder: WorkingFolder | undefined;
  readonly #url: string;
  readonly #listeners = new Set<() => void>();
  #snapshot: ClientSnapshot;
  #rpc: RpcClient | null = null;
  #live: string | null = null;
  #stored: string | undefined;
  #lastCommand: Promise<unknown> = Promise.resolve();
  #opening: Promise<OpenedSession> | null = null;

  constructor(url: string, storedId?: string) {
    this.#url = url;
    const opened = { count: 0, id: storedId };
    this.#snapshot = { state: EMPTY_CONVERSATION, connection: "connecting", problem: null, opened };
  }

  /** For useSyncExternalStore. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): ClientSnapshot => this.#snapshot;

  /** Connect to the server; the result closes the connection. */
  connect(): () => void {
    const rpc = new RpcClient(
      this.#url,
      (event) => this.#handleEvent(event),
      (connection) => this.#handleConnection(connection),
    );
    this.#rpc = rpc;
    return () => rpc.close();
  }

  /** Show a stored conversation; without one, the first message creates a conversation. */
  show(storedId: string | undefined): void {
    if (storedId === this.#stored) return;
    const before = this.#live;
    this.#stored = storedId;
    this.#live = null;
    const opened = { count: this.#snapshot.opened.count + 1, id: storedId };
    this.#change({ state: EMPTY_CONVERSATION, problem: null, opened });
    if (before) this.#rpc?.call("session.close", { session_id: before, unless_running: true }).catch(() => {});
    this.#opening = null;
    if (storedId) this.#resume(storedId);
  }

  /** A request that belongs to no conversation. */
  readonly request: RpcRequest = (method, params) =>
    this.#rpc ? this.#rpc.call(method, params) : Promise.reject(new Error(NOT_CONNECTED));

  /** A request of the open conversation. */
  readonly call: SessionRequest = async (method, params) => {
    if (!this.#rpc || !this.#live) throw new Error(this.#stored ? IS_GONE : "No conversation is open.");
    const fields = { session_id: this.#live, ...params };
    return this.#rpc.call(method, fields as Parameters<typeof this.request<typeof method>>[1]);
  };

  async changeFolder(choice: WorkingFolder): Promise<void> {
    const { cwd } = await this.call("session.cwd.set", { ...choice });
    this.#update((now) => (now.info ? { ...now, info: { ...now.info, cwd } } : now));
  }

  /** Put a text into the input. */
  insertText(text: string): void {
    this.#update((now) => ({ ...now, returned: { ...EMPTY_DRAFT, text } }));
  }

  clearReturned(): void {
    this.#update((now) => ({ ...now, returned: EMPTY_DRAFT }));
  }

  async runCommand(line: string): Promise<void> {
    const [name = "", ...rest] = line.slice(1).split(" ");
    await this.#ensureSession();
    const dispatched = this.call("command.dispatch", { name, arg: rest.join(" ") });
    this.#lastCommand = dispatched.catch(() => undefined);
    const { session_id, changed, output, type, message } = await dispatched;
    if (session_id !== this.#live || changed) {
      const isOther = session_id !== this.#live;
      this.#showSession(await this.call("session.activate", { session_id }), isOther);
    }
    if (output) this.#update((now) => addNote(now, output, { isOutput: true }));
    if (type === "prefill") this.insertText(message);
    if (type === "send") await this.call("prompt.submit", { text: message });
  }

  async send(text: string, mode: SendMode, model?: string, images: Attachment[] = []): Promise<void> {
    if (isCommand(text)) return this.runCommand(text);
    // Another conversation may be on screen before the message is sent.
    const session_id = await this.#ensureSession(model);
    await this.#lastCommand; // a message after `/model` goes to the new model
    this.#update((now) => ({ ...now, sentImages: [...now.sentImages, ...images] }));
    await this.request(`session.${mode}`, { session_id, text, images: images.map((one) => one.path).join("\n") });
  }

  /** Ask the last prompt again; its answer is replaced. */
  async retry(): Promise<void> {
    this.#update((now) => ({ ...now, items: beforeLastPrompt(now.items) }));
    try {
      await this.call("session.retry");
    } catch (error) {
      this.#showSession(await this.call("session.activate"));
      throw error;
    }
  }

  /** Continue in a branch before a prompt, or at the end; `text` is sent there. */
  async branch(beforeMessage: number | null, text = ""): Promise<void> {
    const params = { message_id: beforeMessage ?? undefined, keep_images: Boolean(text) };
    const { session_id } = await this.call("session.branch", params);
    this.#showSession(await this.call("session.activate", { session_id }), true);
    if (text) await this.call("prompt.submit", { session_id, text });
  }

  answer(question: AgentQuestion, value: string | ApprovalAnswer): Promise<unknown> {
    const { request_id } = question.payload;
    if (typeof value !== "string") return this.call("approval.respond", { request_id, ...value });
    if (question.type === "clarify.request") return this.call("clarify.respond", { request_id, answer: value });
    return this.call("secret.respond", { request_id, value });
  }

  #change(part: Partial<ClientSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...part };
    for (const listener of this.#listeners) listener();
  }

  #update(change: (now: Conversation) => Conversation): void {
    this.#change({ state: change(this.#snapshot.state) });
  }

  readonly #fail = (problem: Error): void => this.#change({ problem });

  #handleEvent(event: RpcEvent): void {
    if (event.session_id !== this.#live) return;
    if (event.type === "message.stored" && this.#stored) noteEmpty(this.#stored, false, "");
    this.#update((now) => applyEvent(now, event));
    // An imported conversation continues in a branch from its first message on.
    const isMoved = event.type === "session.info" && event.payload.stored_session_id !== this.#stored;
    if (isMoved) this.#update((now) => ({ ...now, isOutdated: !now.info?.running }));
    if (this.#snapshot.state.isOutdated) this.#reload();
  }

  #handleConnection(connection: RpcState): void {
    this.#change({ connection });
    if (connection === "lost") {
      this.#live = null;
      fetchChecked("/api/dashboard/plugins").catch(() => {}); // reports a 401, which opens the sign-in form
    }
    if (connection === "open" && this.#stored && !this.#opening) this.#resume(this.#stored);
  }

  /** Read the conversation again after another client has changed it. */
  #reload(): void {
    this.#update((now) => ({ ...now, isOutdated: false }));
    this.call("session.activate").then((found) => this.#showSession(found), this.#fail);
  }

  #showSession(found: OpenedSession, isOther = false): void {
    this.#live = found.session_id;
    const isOtherSession = this.#stored !== found.stored_session_id;
    this.#stored = found.stored_session_id;
    noteEmpty(found.stored_session_id, found.messages.length === 0 && !found.running, found.info.cwd);
    const { state, opened } = this.#snapshot;
    this.#change({
      problem: null,
      state: isOtherSession ? openConversation(found) : reopenConversation(state, found),
      opened: isOtherSession ? { ...opened, id: found.stored_session_id } : opened,
    });
    if (isOtherSession) this.onMoved(found.stored_session_id, isOther);
  }

  #resume(id: string): void {
    this.#openStored(id).catch(this.#fail);
  }

  /** Open a stored conversation; concurrent callers share one request. */
  #openStored(id: string): Promise<OpenedSession> {
    if (!this.#rpc) return Promise.reject(new Error(NOT_CONNECTED));
    const rpc = this.#rpc;
    const params = { session_id: id, source: "web" };
    const found: Promise<OpenedSession> = rpc
      .call("session.resume", params)
      .catch((error) => {
        const cwd = emptyFolder(id);
        if (cwd === null || !(error instanceof RpcError) || error.code !== NOT_STORED) throw error;
        // A folder that needs the confirmation of the user is refused: the default is used instead.
        return rpc.call("session.create", { ...params, cwd }).catch(() => rpc.call("session.create", params));
      })
      .then((answer) => {
        if (this.#stored === id) this.#showSession(answer);
        return answer;
      })
      .finally(() => {
        if (this.#opening === found) this.#opening = null;
      });
    this.#opening = found;
    return found;
  }

  /** The id of the open session; creates a session if none is open. */
  async #ensureSession(model?: string): Promise<string> {
    if (this.#live) return this.#live;
    // The message goes to the conversation on screen, even while it is still being opened.
    if (this.#stored) return (await (this.#opening ?? this.#openStored(this.#stored))).session_id;
    const found = await this.request("session.create", { source: "web", model, ...this.folder });
    this.#showSession(found);
    return found.session_id;
  }
}
