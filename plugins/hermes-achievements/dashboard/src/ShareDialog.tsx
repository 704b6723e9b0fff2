import { useContext, useEffect, useRef, useState } from "react";
import { save } from "./api";
import { type CardWords, fileName, HEIGHT, layOut, WIDTH } from "./cardLayout";
import { newestAt } from "./choosing";
import { amount, day } from "./format";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { CatalogueContext } from "./Medal";
import { lettersReady, measureOn, paintCard } from "./paintCard";
import type { Achievement, Tier } from "./types";
import { useWords } from "./useWords";

interface Props {
  one: Achievement | null;
  onClose(): void;
}

/** A picture of a badge to show around, drawn here. */
export function ShareDialog({ one, onClose }: Props) {
  const { words } = useWords();
  const { tiers } = useContext(CatalogueContext);
  const { Dialog } = sdk.components;
  const tier = tiers.find((found) => found.id === one?.tier);
  return (
    <Dialog
      open={one !== null && tier !== undefined}
      onOpenChange={(isOpen) => !isOpen && onClose()}
      title={one ? words.shareTitle(one.name) : ""}
      size="lg"
    >
      {one && tier && <Card one={one} tier={tier} />}
    </Dialog>
  );
}

function Card({ one, tier }: { one: Achievement; tier: Tier }) {
  const { words } = useWords();
  const { showToast } = sdk.useToast();
  const canvas = useRef<HTMLCanvasElement>(null);
  const isReady = usePainted(canvas, one, tier);
  const download = async () => save(await pictureOf(canvas.current), fileName(one));
  const copy = async () => {
    try {
      // The picture itself is a promise: Safari wants the clipboard to be asked for at once.
      await navigator.clipboard.write([new ClipboardItem({ "image/png": pictureOf(canvas.current) })]);
      showToast(words.copied, "good");
    } catch {
      showToast(words.copyFailed, "bad");
    }
  };
  return (
    <div className="ach-share">
      <canvas
        ref={canvas}
        width={WIDTH}
        height={HEIGHT}
        role="img"
        aria-label={words.sharePreview(one.name, tier.name)}
        data-ready={isReady}
      />
      <p className="ach-small">{words.shareHelp}</p>
      <div className="ach-share-buttons">
        <button type="button" className="ach-button" disabled={!isReady} onClick={() => void copy()}>
          <Glyph name="copy" />
          {words.copyImage}
        </button>
        <button
          type="button"
          className="ach-button ach-button-main"
          disabled={!isReady}
          onClick={() => void download()}
        >
          <Glyph name="download" />
          {words.download}
        </button>
      </div>
    </div>
  );
}

/** Paints the card once its letters are there; whether that is done. */
function usePainted(canvas: { current: HTMLCanvasElement | null }, one: Achievement, tier: Tier): boolean {
  const { words, locale } = useWords();
  const { tiers, icons } = useContext(CatalogueContext);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isOver = false;
    const written: CardWords = {
      pill: words.sharePill(tier.name),
      name: one.name,
      description: one.description,
      foot: footOf(one, locale),
    };
    void lettersReady().then(() => {
      const context = canvas.current?.getContext("2d");
      if (!context || isOver) return;
      paintCard(context, layOut(one, written, tiers, measureOn(context)), tier, icons[one.icon] ?? "", tiers);
      setReady(true);
    });
    return () => {
      isOver = true;
    };
  }, [canvas, one, tier, tiers, icons, words, locale]);
  return isReady;
}

function footOf(one: Achievement, locale: string): string {
  const at = newestAt(one);
  const took = one.progress > 1 ? `${amount(one.progress, locale)} ${one.unit}` : "";
  return [took, at ? day(at, locale) : ""].filter(Boolean).join(" · ");
}

function pictureOf(canvas: HTMLCanvasElement | null): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const take = (file: Blob | null) => (file ? resolve(file) : reject(new Error("The canvas has no image.")));
    if (canvas) canvas.toBlob(take, "image/png");
    else take(null);
  });
}
