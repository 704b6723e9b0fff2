import { type CSSProperties, createContext, createElement, memo, useContext, useMemo } from "react";
import { hexagonPoints, parseShapes } from "./iconShapes";
import type { Catalogue, Tier } from "./types";

const EMPTY_CATALOGUE: Catalogue = { tiers: [], categories: [], icons: {} };
const FALLBACK_ICON = "award";

/** The catalogue: tiers, categories and icons. */
export const CatalogueContext = createContext<Catalogue>(EMPTY_CATALOGUE);

/** A tier by its id. */
export function useTier(id: string | null | undefined): Tier | null {
  const { tiers } = useContext(CatalogueContext);
  return tiers.find((one) => one.id === id) ?? null;
}

/** The style that gives an element with the class `ach-tinted` the colour of a tier. */
export function tint(tier: Tier | null | undefined): CSSProperties {
  if (!tier) return {};
  return { "--tier-colour": tier.colour, "--tier-glow": tier.glow } as CSSProperties;
}

/** The gradients that medals refer to; rendered once per page. */
export function MedalGradients() {
  const { tiers } = useContext(CatalogueContext);
  return (
    <svg className="ach-gradients" width="0" height="0" aria-hidden="true">
      <defs>
        {tiers.map((tier) => (
          <linearGradient
            key={tier.id}
            id={`ach-gradient-${tier.id}`}
            x1="0"
            y1="0"
            x2="0.4"
            y2="1"
            className="ach-tinted"
            style={tint(tier)}
          >
            <stop offset="0" className="ach-gradient-top" />
            <stop offset="1" className="ach-gradient-bottom" />
          </linearGradient>
        ))}
      </defs>
    </svg>
  );
}

interface Props {
  icon: string;
  tier: string | null;
  size?: number;
}

/** The medal of a badge: its icon on a hexagon in the colour of its tier. */
export const Medal = memo(function Medal({ icon, tier: id, size = 60 }: Props) {
  const tier = useTier(id);
  const { icons } = useContext(CatalogueContext);
  const shapes = useMemo(() => parseShapes(icons[icon] ?? icons[FALLBACK_ICON] ?? ""), [icons, icon]);
  return (
    <svg
      className={tier ? "ach-medal ach-tinted" : "ach-medal"}
      data-tier={id ?? "open"}
      style={tint(tier)}
      width={size}
      height={size}
      viewBox="0 0 64 64"
      aria-hidden="true"
    >
      <polygon className="ach-medal-ring" points={hexagonPoints(32, 32, 29.5)} />
      <polygon
        className="ach-medal-face"
        points={hexagonPoints(32, 32, 25)}
        fill={tier ? `url(#ach-gradient-${tier.id})` : undefined}
      />
      <g className="ach-medal-icon" transform="translate(19.4 19.4) scale(1.05)">
        {shapes.map(({ tag, attributes }, number) =>
          createElement(tag, { key: `${number} ${attributes.d ?? tag}`, ...attributes }),
        )}
      </g>
    </svg>
  );
});
