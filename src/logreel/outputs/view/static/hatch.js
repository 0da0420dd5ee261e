// Hatched boxes, for what was not measured: of the viewer, and of pages with plots.

/** Hatch a box of a canvas by lines `apart` pixels from each other; those of all boxes are parts of the same lines. */
export function hatch(pen, left, right, top, height, apart) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, height);
  pen.clip();
  pen.beginPath();
  for (let at = Math.floor((left - height) / apart) * apart; at < right; at += apart) {
    pen.moveTo(at, top + height);
    pen.lineTo(at + height, top);
  }
  pen.stroke();
  pen.restore();
}
