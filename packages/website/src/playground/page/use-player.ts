import { useEffect, useRef, useState } from 'preact/hooks'

export const STILL: boolean = matchMedia('(prefers-reduced-motion: reduce)').matches
/** Milliseconds between two pictures with reduced motion. */
const SLIDES = 500
/** Milliseconds between two updates of the text. */
const WRITES = 250

export interface Player {
  readonly playing: boolean
  readonly speed: number
  /** Milliseconds of the film, at the last update of the text. */
  readonly time: number
  /** Milliseconds of the film, at the last drawing. */
  now(): number
  pause(): void
  /** Plays if it is paused, and pauses if it plays. */
  toggle(): void
  setSpeed(speed: number): void
  seek(time: number): void
  /** Draws the same moment again. */
  redraw(): void
}

interface Played {
  /** Milliseconds. */
  readonly length: number
  /** Milliseconds of the film at which it begins. */
  readonly begin: number
  /** Initial speed, in milliseconds of the film per millisecond. */
  readonly speed: number
  draw(time: number, speed: number): void
}

/** Plays a film: calls `draw` for each picture, and renders the component a few times a second. */
export function usePlayer({ length, begin, speed: first, draw }: Played): Player {
  const [playing, setPlaying] = useState(!STILL)
  const [speed, setSpeed] = useState(first)
  const [time, setTime] = useState(begin)
  const now = useRef(begin)
  /** Whether the film should play. A ref, so that a pause takes effect before the next render. */
  const plays = useRef(playing)
  const drawing = useRef(draw)
  drawing.current = draw

  useEffect(() => {
    drawing.current(now.current, speed)
    if (!playing) return undefined
    let before: number | undefined
    let drawn = Number.NEGATIVE_INFINITY
    let wrote = Number.NEGATIVE_INFINITY
    let handle = requestAnimationFrame(function next(at) {
      if (!plays.current) return
      // A hidden page continues at its last position.
      now.current = Math.min(length, now.current + Math.min(200, at - (before ?? at)) * speed)
      before = at
      if (!STILL || at - drawn >= SLIDES) {
        drawn = at
        drawing.current(now.current, speed)
      }
      if (at - wrote >= WRITES) {
        wrote = at
        setTime(now.current)
      }
      if (now.current < length) handle = requestAnimationFrame(next)
      else {
        plays.current = false
        setPlaying(false)
      }
    })
    return () => cancelAnimationFrame(handle)
  }, [playing, speed, length])

  return {
    playing,
    speed,
    time,
    setSpeed,
    now: () => now.current,
    pause() {
      plays.current = false
      setPlaying(false)
      setTime(now.current)
    },
    toggle() {
      if (now.current >= length) now.current = 0
      plays.current = !plays.current
      setPlaying(plays.current)
      setTime(now.current)
    },
    seek(to) {
      now.current = Math.max(0, Math.min(length, to))
      setTime(now.current)
      drawing.current(now.current, speed)
    },
    redraw() {
      drawing.current(now.current, speed)
    },
  }
}
