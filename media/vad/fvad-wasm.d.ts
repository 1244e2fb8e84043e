/** The part of @echogarden/fvad-wasm that is used here; the package brings no types. */
declare module '@echogarden/fvad-wasm' {
  type Fvad = {
    readonly HEAP16: Int16Array
    _malloc(bytes: number): number
    _fvad_new(): number
    _fvad_free(instance: number): void
    _fvad_set_mode(instance: number, mode: number): number
    _fvad_set_sample_rate(instance: number, rateHz: number): number
    _fvad_process(instance: number, samples: number, count: number): number
  }
  const createFvad: (module?: object) => Promise<Fvad>
  export default createFvad
}
