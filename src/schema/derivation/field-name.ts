/**
 * The name of a field that is called like a type: `Person` gives `person`, `HRPerson` gives `hrPerson`.
 */
export function fieldName(type: string): string {
  const [capitals = ''] = /^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?![a-z])|^[A-Z]/.exec(type) ?? [];
  return capitals.toLowerCase() + type.slice(capitals.length);
}
