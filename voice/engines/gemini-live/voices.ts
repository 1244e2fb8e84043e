/** Owns the names of Google's prebuilt voices: a worker whose voice is none of them speaks with the deployment's. */

const names =
  'Zephyr Puck Charon Kore Fenrir Leda Orus Aoede Callirrhoe Autonoe Enceladus Iapetus Umbriel Algieba Despina Erinome Algenib Rasalgethi Laomedeia Achernar Alnilam Schedar Gacrux Pulcherrima Achird Zubenelgenubi Vindemiatrix Sadachbia Sadaltager Sulafat'
const voices = new Map(names.split(' ').map((name) => [name.toLowerCase(), name]))

/** Null when there is no such voice. */
export const prebuiltVoice = (name: string): string | null => voices.get(name.toLowerCase()) ?? null
