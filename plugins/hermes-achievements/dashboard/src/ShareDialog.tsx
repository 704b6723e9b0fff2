import { useContext, useEffect, useRef, useState } from "react";
import { downloadBlob } from "./api";
import { CARD_HEIGHT, CARD_WIDTH, type CardTexts, fileName, layOutCard } from "./cardLayout";
import { createMeasure, loadFonts, paintCard } from "./cardPainter";
import { formatDay, formatNumber } from "./format";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { CatalogueContext } from "./Medal";
import type { Achievement, Tier } from "./types";
import { useTexts } from "./useTexts";
import { lastEarnedAt } from "./viewState";

interface Props {
  one: Achievement | null;
  onClose(): void;
}

/** A dialog with an image of a badge to copy or download. */
export function ShareDialog({ one, onClose }: Props) {
  const { texts } = useTexts();
  const { tiers } = useContext(CatalogueContext);
  const { Dialog } = sdk.components;
  const tier = tiers.find((found) => found.id === one?.tier);
  return (
    <Dialog
      open={one !== null && tier !== undefined}
      onOpenChange={(isOpen) => !isOpen && onClose()}
      title={one ? texts.shareTitle(one.name) : ""}
      size="lg"
    >
      {one && tier && <Card one={one} tier={tier} />}
    </Dialog>
  );
}

function Card({ one, tier }: { one: Achievement; tier: Tier }) {
  const { texts } = useTexts();
  const { showToast } = sdk.useToast();
  const canvas = useRef<HTMLCanvasElement>(null);
  const isReady = usePaintedCard(canvas, one, tier);
  const download = async () => downloadBlob(await toPngBlob(canvas.current), fileName(one));
  const copy = async () => {
    try {
      // Safari requires the clipboard call within the click, so the image is passed as a promise.
      await navigator.clipboard.write([new ClipboardItem({ "image/png": toPngBlob(canvas.current) })]);
      showToast(texts.copied, "good");
    } catch {
      showToast(texts.copyFailed, "bad");
    }
  };
  return (
    <div className="ach-share">
      <canvas
        ref={canvas}
        width={CARD_WIDTH}
        height={CARD_HEIGHT}
        role="img"
        aria-label={texts.sharePreview(one.name, tier.name)}
        data-ready={isReady}
      />
      <p className="ach-small">{texts.shareHelp}</p>
      <div className="ach-share-buttons">
        <button type="button" className="ach-button" disabled={!isReady} onClick={() => void copy()}>
          <Glyph name="copy" />
          {texts.copyImage}
        </button>
        <button
          type="button"
          className="ach-button ach-button-main"
          disabled={!isReady}
          onClick={() => void download()}
        >
          <Glyph name="download" />
          {texts.download}
        </button>
      </div>
    </div>
  );
}

/** Paint the card when its fonts are loaded; returns whether that is done. */
function usePaintedCard(canvas: { current: HTMLCanvasElement | null }, one: Achievement, tier: Tier): boolean {
  const { texts, locale } = useTexts();
  const { tiers, icons } = useContext(CatalogueContext);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isOver = false;
    const written: CardTexts = {
      pill: texts.sharePill(tier.name),
      name: one.name,
      description: one.description,
      foot: footerText(one, locale),
    };
    void loadFonts().then(() => {
      const context = canvas.current?.getContext("2d");
      if (!context || isOver) return;
      paintCard(context, layOutCard(one, written, tiers, createMeasure(context)), tier, icons[one.icon] ?? "", tiers);
      setReady(true);
    });
    return () => {
      isOver = true;
    };
  }, [canvas, one, tier, tiers, icons, texts, locale]);
  return isReady;
}

function footerText(one: Achievement, locale: string): string {
  const at = lastEarnedAt(one);
  const took = one.progress > 1 ? `${formatNumber(one.progress, locale)} ${one.unit}` : "";
  return [took, at ? formatDay(at, locale) : ""].filter(Boolean).join(" · ");
}

function toPngBlob(canvas: HTMLCanvasElement | null): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const take = (file: Blob | null) => (file ? resolve(file) : reject(new Error("The canvas has no image.")));
    if (canvas) canvas.toBlob(take, "image/png");
    else take(null);
  });
}
