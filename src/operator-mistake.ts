/** The operator's to mend before anything is served; the message says how. */
export class OperatorMistake extends Error {
  override name = 'OperatorMistake';
}
