import assert from "node:assert/strict";
import { test } from "node:test";
import { lineColor, lineDash } from "../../src/palette.ts";
import { DARK, LIGHT } from "../../src/vocabulary.ts";

type Rgb = [number, number, number];
const linear = (part: number) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const rgb = (hex: string) => [1, 3, 5].map((at) => linear(parseInt(hex.slice(at, at + 2), 16) / 255)) as Rgb;
const luminance = ([r, g, b]: Rgb) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const contrast = (one: string, other: string) => {
  const [low, high] = [luminance(rgb(one)), luminance(rgb(other))].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
};

// Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
const SIGHTS: Record<string, number[][]> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};
const seen = (hex: string, sight: number[][]) =>
  sight.map((row) => row.reduce((sum, factor, at) => sum + factor * (rgb(hex)[at] as number), 0)) as Rgb;

function lab([r, g, b]: Rgb): Rgb {
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [x, y, z] = [
    f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505),
    f(luminance([r, g, b])),
    f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089),
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (one: Rgb, other: Rgb) => Math.hypot(...one.map((part, at) => part - (other[at] as number)));

for (const [name, colors, ground] of [
  ["light", LIGHT, "#ffffff"],
  ["dark", DARK, "#151a20"],
] as const) {
  test(`lines stand out from the ${name} ground`, () => {
    for (const color of colors) assert.ok(contrast(color, ground) >= 3, `${color} ${contrast(color, ground).toFixed(2)}`);
  });

  for (const [sight, matrix] of Object.entries(SIGHTS)) {
    test(`${name} lines differ from each other with ${sight} sight`, () => {
      colors.forEach((one, at) => {
        for (const other of colors.slice(at + 1)) {
          const apart = distance(lab(seen(one, matrix)), lab(seen(other, matrix)));
          assert.ok(apart >= 12, `${one} ${other} ${apart.toFixed(1)}`);
        }
      });
    });
  }
}

test("from the ninth line on, dashes tell it from the first", () => {
  assert.equal(lineColor(9, true), lineColor(1, true));
  assert.equal(lineDash(1), undefined);
  assert.ok(lineDash(9));
  assert.notDeepEqual(lineDash(9), lineDash(17));
});
