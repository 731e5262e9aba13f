/** A mistake that the operator must correct before the gateway can start. The message says how. */
export class OperatorMistake extends Error {
  override name = 'OperatorMistake';
}
