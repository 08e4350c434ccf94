// Of `negotiator` only this file is needed: the whole is four times as much code.
declare module 'negotiator/lib/mediaType.js' {
  /** Those of the types `provided` that an `Accept` header takes, the most preferred first. */
  export default function preferredMediaTypes(accept: string, provided: readonly string[]): string[]
}
