/** A scene in the documentation. Without scripts it is a picture, and with scripts the scene itself. */
export interface Still {
  /** The picture is `scene-NAME.svg`. */
  readonly name: 'limit' | 'outage' | 'straddle' | 'stream' | 'far'
  /** The search part of the playground's address. */
  readonly address: string
  /** Seconds of the film at which the picture was taken, if there is a film. */
  readonly at?: number
}

export const STILLS: readonly Still[] = [
  { name: 'limit', address: '?scene=limit&seed=1', at: 13.45 },
  { name: 'outage', address: '?scene=outage&from=0.4&until=1.7&seed=1', at: 8 },
  { name: 'straddle', address: '?scene=straddle&seed=1' },
  { name: 'stream', address: '?scene=stream&seed=1' },
  { name: 'far', address: '?scene=far&seed=1' },
]

/** The playground's address of a still, for the scene that replaces it. */
export function embeddedAddress({ address, at }: Still): string {
  return `${address}${at === undefined ? '' : `&at=${at}`}&embed`
}
