/** The surface of a picture. Each call draws one colour, for any number of shapes. */
export interface Brush {
  /** @param list - x, y, width and height of each rectangle */
  rects(color: string, list: readonly number[], alpha?: number): void
  /** @param list - x and y of each centre */
  dots(color: string, radius: number, list: readonly number[], alpha?: number): void
  frame(color: string, thick: number, x: number, y: number, width: number, height: number, alpha?: number): void
  /** A broken line from top to bottom. */
  fence(color: string, x: number, height: number): void
  /** @param y - the middle of the text */
  text(color: string, size: number, align: 'left' | 'right', text: string, x: number, y: number): void
}

const FONT = 'system-ui, sans-serif'

/** Draws on a canvas. */
export class CanvasBrush implements Brush {
  readonly #context: CanvasRenderingContext2D

  constructor(context: CanvasRenderingContext2D) {
    this.#context = context
  }

  rects(color: string, list: readonly number[], alpha = 1): void {
    const context = this.#context
    context.fillStyle = color
    context.globalAlpha = alpha
    for (let at = 0; at < list.length; at += 4) {
      context.fillRect(list[at] as number, list[at + 1] as number, list[at + 2] as number, list[at + 3] as number)
    }
    context.globalAlpha = 1
  }

  dots(color: string, radius: number, list: readonly number[], alpha = 1): void {
    const context = this.#context
    context.fillStyle = color
    context.globalAlpha = alpha
    context.beginPath()
    for (let at = 0; at < list.length; at += 2) {
      const [x, y] = [list[at] as number, list[at + 1] as number]
      context.moveTo(x + radius, y)
      context.arc(x, y, radius, 0, 2 * Math.PI)
    }
    context.fill()
    context.globalAlpha = 1
  }

  frame(color: string, thick: number, x: number, y: number, width: number, height: number, alpha = 1): void {
    const context = this.#context
    context.strokeStyle = color
    context.globalAlpha = alpha
    context.lineWidth = thick
    context.strokeRect(x, y, width, height)
    context.globalAlpha = 1
  }

  fence(color: string, x: number, height: number): void {
    const context = this.#context
    context.strokeStyle = color
    context.lineWidth = 1
    context.setLineDash([4, 3])
    context.beginPath()
    context.moveTo(x, 0)
    context.lineTo(x, height)
    context.stroke()
    context.setLineDash([])
  }

  text(color: string, size: number, align: 'left' | 'right', text: string, x: number, y: number): void {
    const context = this.#context
    context.font = `${size}px ${FONT}`
    context.textBaseline = 'middle'
    context.textAlign = align
    context.fillStyle = color
    context.fillText(text, x, y)
  }
}

/** Writes SVG. */
export class SvgBrush implements Brush {
  readonly #parts: string[] = []

  rects(color: string, list: readonly number[], alpha?: number): void {
    let path = ''
    for (let at = 0; at < list.length; at += 4) {
      const [x, y, width, height] = list.slice(at, at + 4).map(rounded)
      path += `M${x} ${y}h${width}v${height}h-${width}z`
    }
    this.#add('path', { d: path, fill: color, 'fill-opacity': alpha })
  }

  dots(color: string, radius: number, list: readonly number[], alpha?: number): void {
    for (let at = 0; at < list.length; at += 2) {
      const [cx, cy] = list.slice(at, at + 2).map(rounded)
      this.#add('circle', { cx, cy, r: radius, fill: color, 'fill-opacity': alpha })
    }
  }

  frame(color: string, thick: number, x: number, y: number, width: number, height: number, alpha?: number): void {
    const place = { x: rounded(x), y: rounded(y), width: rounded(width), height: rounded(height) }
    this.#add('rect', { ...place, fill: 'none', stroke: color, 'stroke-width': thick, 'stroke-opacity': alpha })
  }

  fence(color: string, x: number, height: number): void {
    this.#add('path', { d: `M${rounded(x)} 0v${height}`, stroke: color, 'stroke-dasharray': '4 3' })
  }

  text(color: string, size: number, align: 'left' | 'right', text: string, x: number, y: number): void {
    const anchor = align === 'right' ? 'end' : undefined
    const place = { x: rounded(x), y: rounded(y), 'dominant-baseline': 'middle' }
    this.#add('text', { ...place, 'text-anchor': anchor, 'font-size': size, 'font-family': FONT, fill: color }, text)
  }

  toString(): string {
    return this.#parts.join('\n')
  }

  #add(name: string, attributes: Readonly<Record<string, string | number | undefined>>, text?: string): void {
    if (attributes['d'] === '') return
    const written = Object.entries(attributes).map(([key, value]) => (value === undefined ? '' : ` ${key}="${value}"`))
    this.#parts.push(`<${name}${written.join('')}${text === undefined ? '/>' : `>${text}</${name}>`}`)
  }
}

function rounded(value: number): number {
  return Number(value.toFixed(1))
}
