// Rectangles in one picture, which goes onto the canvas at once. Tens of thousands of them are to be drawn in each frame: written into
// memory they take a tenth of what as many calls of fillRect take.

const one = new Uint32Array(1), oneBytes = new Uint8ClampedArray(one.buffer);
let probe: CanvasRenderingContext2D | undefined;

/** A CSS colour as a number that lies in memory as an ImageData has it. */
export function pixelOf(css: string): number {
  if (!probe) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    probe = canvas.getContext("2d", { willReadFrequently: true })!;
  }
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = css;
  probe.fillRect(0, 0, 1, 1);
  oneBytes.set(probe.getImageData(0, 0, 1, 1).data);
  return one[0];
}

export class Raster {
  private readonly canvas = document.createElement("canvas");
  private readonly ctx = this.canvas.getContext("2d", { willReadFrequently: true })!; // stays in main memory
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(this.image.data.buffer);
  private width = 1;
  private height = 1;
  private top = Infinity; // rows that were drawn on
  private bottom = 0;

  /** An empty picture. */
  begin(width: number, height: number): void {
    if (width !== this.width || height !== this.height) {
      this.width = this.canvas.width = Math.max(1, width);
      this.height = this.canvas.height = Math.max(1, height);
      this.image = new ImageData(this.width, this.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else if (this.top < this.bottom) this.pixels.fill(0, this.top * this.width, this.bottom * this.width);
    this.top = Infinity;
    this.bottom = 0;
  }

  private touch(y0: number, y1: number): void {
    if (y0 < this.top) this.top = y0;
    if (y1 > this.bottom) this.bottom = y1;
  }

  rect(x: number, y: number, w: number, h: number, color: number): void {
    const x0 = Math.max(0, x), x1 = Math.min(this.width, x + w), y0 = Math.max(0, y), y1 = Math.min(this.height, y + h), { pixels, width } = this;
    if (x0 >= x1 || y0 >= y1) return;
    this.touch(y0, y1);
    for (let row = y0 * width; row < y1 * width; row += width)
      if (x1 - x0 > 24) pixels.fill(color, row + x0, row + x1);
      else for (let i = row + x0; i < row + x1; i++) pixels[i] = color;
  }

  /** In each column from `low` to `high` a bar of tall[c] pixels in the colour bar[c], and above it up to `full` the colour above[c]; none where tall[c] is 0. */
  bars(low: number, high: number, y: number, full: number, tall: Uint8Array, bar: Uint32Array, above: Uint32Array): void {
    const y0 = Math.max(0, y), y1 = Math.min(this.height, y + full), last = Math.min(high, this.width - 1), { pixels } = this;
    if (low > last || y0 >= y1) return;
    this.touch(y0, y1);
    for (let row = y0; row < y1; row++) {
      const from = row * this.width, under = y + full - row; // bars at least so tall reach this row
      for (let c = low; c <= last; c++) if (tall[c]) pixels[from + c] = tall[c] >= under ? bar[c] : above[c];
    }
  }

  /** Puts the picture onto a canvas, its upper left corner at x, y. */
  show(to: CanvasRenderingContext2D, x: number, y: number): void {
    const rows = this.bottom - this.top;
    if (!(rows > 0)) return;
    this.ctx.putImageData(this.image, 0, 0, 0, this.top, this.width, rows);
    to.imageSmoothingEnabled = false;
    to.drawImage(this.canvas, 0, this.top, this.width, rows, x, y + this.top, this.width, rows);
  }
}
