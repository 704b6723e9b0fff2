import { Link } from "@tanstack/react-router";
import type { FileEdit } from "@/api/types";
import { ShortTime } from "@/components/ShortTime";
import { useTexts } from "@/i18n";
import classes from "./Edits.module.css";

interface Props {
  edit: FileEdit;
  withFile: boolean;
}

/** An edit: its file, the conversation and the prompt that led to it. */
export function EditRow({ edit, withFile }: Props) {
  const { edits: texts, general } = useTexts();
  const name = edit.path.slice(edit.path.lastIndexOf("/") + 1);
  const folder = edit.path.slice(0, edit.path.length - name.length);
  return (
    <article className={classes.edit}>
      <div className={classes.head}>
        {withFile && (
          <Link to="/edits" search={{ path: edit.path } as never} className={classes.file}>
            {name}
          </Link>
        )}
        <span className={classes.counts}>
          <span className={classes.added}>+{edit.added_lines}</span>{" "}
          <span className={classes.removed}>−{edit.removed_lines}</span>
        </span>
        <small>
          {edit.agent} · <ShortTime at={edit.at} />
        </small>
      </div>
      {withFile && <small className={classes.folder}>{folder}</small>}
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: edit.session_id }}
        search={{ message: edit.message_id } as never}
        className={classes.conversation}
      >
        {edit.title || edit.prompt || general.untitled}
      </Link>
      {edit.prompt && edit.title && <small className={classes.prompt}>{texts.prompt(edit.prompt)}</small>}
    </article>
  );
}
