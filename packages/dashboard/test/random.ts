/** The seed of a random test, printed so that `FC_SEED` replays it. */
export function seed(name: string): number {
  const given = process.env['FC_SEED']
  const chosen = given === undefined ? Date.now() % 2 ** 31 : Number(given)
  console.log(`${name}: FC_SEED=${chosen}`)
  return chosen
}
