import { type MouseEvent, useEffect, useRef, useState } from "react";
import { downloadBlob, errorMessage, fetchFile } from "./api";
import { Glyph } from "./Glyph";
import { sdk } from "./host/sdk";
import { clampSlide, slideForKey, slideForSwipe } from "./story";
import type { Recap, RecapSlide } from "./types";
import { useTexts } from "./useTexts";

interface Props {
  recap: Recap;
  isOpen: boolean;
  onClose(): void;
}

/** The recap as slides, one after the other: by keys, buttons or swipes. */
export function RecapStory({ recap, isOpen, onClose }: Props) {
  const { texts } = useTexts();
  const { Dialog } = sdk.components;
  return (
    <Dialog open={isOpen} onOpenChange={(open) => !open && onClose()} title={texts.story(recap.period.name)} size="lg">
      {isOpen && <Slides recap={recap} />}
    </Dialog>
  );
}

function Slides({ recap }: { recap: Recap }) {
  const { texts } = useTexts();
  const { slides } = recap;
  const [index, setIndex] = useState(0);
  const touchedAt = useRef<number | null>(null);
  const slide = slides[index];
  useEffect(() => {
    // The dialog decides what has the focus, so keys are taken wherever it is.
    const onKeyDown = (event: KeyboardEvent) => {
      const isButton = (event.target as HTMLElement).tagName === "BUTTON";
      const next = isButton && event.key === " " ? null : slideForKey(event.key, index, slides.length);
      if (next === null) return;
      event.preventDefault();
      setIndex(next);
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [index, slides.length]);
  if (!slide) return null;

  const onClick = (event: MouseEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setIndex(clampSlide(event.clientX < left + width / 3 ? index - 1 : index + 1, slides.length));
  };
  return (
    <section
      className="ach-story"
      aria-roledescription={texts.storyRole}
      aria-label={texts.story(recap.period.name)}
      onTouchStart={(event) => {
        touchedAt.current = event.touches[0]?.clientX ?? null;
      }}
      onTouchEnd={(event) => {
        const from = touchedAt.current;
        touchedAt.current = null;
        const to = event.changedTouches[0]?.clientX;
        if (from !== null && to !== undefined) setIndex(slideForSwipe(to - from, index, slides.length));
      }}
    >
      <div className="ach-story-progress" aria-hidden="true">
        {slides.map((one, position) => (
          <span key={one.id} data-past={position <= index} />
        ))}
      </div>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the story */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the buttons below do the same */}
      <div className="ach-story-stage" onClick={onClick}>
        <SlideView key={slide.id} slide={slide} position={texts.storyPosition(index + 1, slides.length)} />
      </div>
      <div className="ach-story-bar">
        <button
          type="button"
          className="ach-button ach-button-square"
          aria-label={texts.storyBack}
          disabled={index === 0}
          onClick={() => setIndex(clampSlide(index - 1, slides.length))}
        >
          <Glyph name="back" />
        </button>
        <button
          type="button"
          className="ach-button ach-button-square"
          aria-label={texts.storyNext}
          disabled={index === slides.length - 1}
          onClick={() => setIndex(clampSlide(index + 1, slides.length))}
        >
          <Glyph name="forth" />
        </button>
        <SlideButtons period={recap.period.id} slide={slide} />
      </div>
    </section>
  );
}

function SlideView({ slide, position }: { slide: RecapSlide; position: string }) {
  return (
    <div className="ach-slide" aria-live="polite">
      <p className="ach-visually-hidden">{position}</p>
      <p className="ach-kicker ach-reveal">{slide.heading}</p>
      <p className="ach-slide-figure ach-reveal">{slide.figure}</p>
      {slide.lines.map((line) => (
        <p key={line} className="ach-slide-line ach-reveal">
          {line}
        </p>
      ))}
      {slide.bars.length > 0 && (
        <ol className="ach-ranked ach-reveal">
          {slide.bars.map(({ name, value, share }) => (
            <li key={name}>
              <span>{name}</span>
              <b>{value}</b>
              <div className="ach-track" aria-hidden="true">
                <div className="ach-fill" style={{ width: `${100 * share}%` }} />
              </div>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** Save the slide as a picture, or hand it to another app where the browser can. */
function SlideButtons({ period, slide }: { period: string; slide: RecapSlide }) {
  const { texts } = useTexts();
  const { showToast } = sdk.useToast();
  const [isDrawing, setDrawing] = useState(false);
  const name = `hermes-recap-${period}-${slide.id}.png`;
  const draw = async (use: (picture: Blob) => void | Promise<void>) => {
    setDrawing(true);
    try {
      const query = `period=${encodeURIComponent(period)}&slide=${encodeURIComponent(slide.id)}`;
      await use(await fetchFile(`/recap/picture?${query}`));
    } catch (error) {
      if ((error as Error).name !== "AbortError")
        showToast({ title: texts.recapSaveFailed, message: errorMessage(error), kind: "bad" });
    } finally {
      setDrawing(false);
    }
  };
  return (
    <>
      <button
        type="button"
        className="ach-button ach-button-main ach-recap-save"
        disabled={isDrawing}
        aria-busy={isDrawing}
        onClick={() => void draw((picture) => downloadBlob(picture, name))}
      >
        <Glyph name="download" />
        {texts.storySave}
      </button>
      {canShareFiles() && (
        <button
          type="button"
          className="ach-button"
          disabled={isDrawing}
          onClick={() =>
            void draw((picture) => navigator.share({ files: [new File([picture], name, { type: "image/png" })] }))
          }
        >
          <Glyph name="share" />
          {texts.share}
        </button>
      )}
    </>
  );
}

function canShareFiles(): boolean {
  const sample = new File([""], "sample.png", { type: "image/png" });
  return typeof navigator.canShare === "function" && navigator.canShare({ files: [sample] });
}
