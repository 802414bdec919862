/** Makes a form of a tool's JSON schema: a field for each argument, by its type, with its description; what is left empty is left out. */

import { useId } from 'preact/hooks';
import * as z from 'zod/mini';

const propertySchema = z.object({
  type: z.optional(z.union([z.string(), z.array(z.string())])),
  description: z.optional(z.string()),
  enum: z.optional(z.array(z.union([z.string(), z.number()]))),
  default: z.optional(z.unknown()),
  items: z.optional(z.unknown()),
  anyOf: z.optional(z.array(z.unknown())),
});
type Property = z.infer<typeof propertySchema>;

const objectSchema = z.object({
  properties: z.optional(z.record(z.string(), propertySchema)),
  required: z.optional(z.array(z.string())),
});

interface SchemaFormProps {
  schema: unknown;
  /** Arguments that the page gives itself. */
  hidden: readonly string[];
  isBusy: boolean;
  submit: string;
  onSubmit(args: Record<string, unknown>): void;
  onProblem(problem: string): void;
}

export function SchemaForm({ schema, hidden, isBusy, submit, onSubmit, onProblem }: SchemaFormProps) {
  const { properties = {}, required = [] } = objectSchema.parse(schema);
  const shown = Object.entries(properties)
    .filter(([name]) => !hidden.includes(name))
    .sort(([a], [b]) => Number(required.includes(b)) - Number(required.includes(a)));

  function read(form: HTMLFormElement): void {
    const data = new FormData(form);
    const args: Record<string, unknown> = {};
    try {
      for (const [name, property] of shown) {
        const value = readField(data.get(name), property);
        if (value !== undefined) args[name] = value;
        else if (required.includes(name)) throw new Error('it is required.');
      }
    } catch (error) {
      return onProblem(error instanceof Error ? error.message : String(error));
    }
    onSubmit(args);
  }

  return (
    <form
      class="schema-form"
      onSubmit={(event) => {
        event.preventDefault();
        read(event.currentTarget);
      }}
    >
      {shown.map(([name, property]) => (
        <Field key={name} name={name} property={property} isRequired={required.includes(name)} />
      ))}
      <button type="submit" class="primary" disabled={isBusy}>
        {submit}
      </button>
    </form>
  );
}

interface FieldProps {
  name: string;
  property: Property;
  isRequired: boolean;
}

function Field({ name, property, isRequired }: FieldProps) {
  const id = useId();
  const hint = property.description ? `${id}-hint` : undefined;
  const common = { id, name, ...(hint && { 'aria-describedby': hint }) };
  const usual = property.default === undefined ? '' : JSON.stringify(property.default);
  const kind = kindOf(property);
  return (
    <div class="field">
      <label htmlFor={id}>
        {name}
        {isRequired && <span class="required"> required</span>}
      </label>
      {kind === 'choice' && (
        <select {...common}>
          {!isRequired && <option value="">{usual ? `default: ${usual}` : 'not given'}</option>}
          {(property.enum ?? ['true', 'false']).map((value) => (
            <option key={String(value)} value={String(value)}>
              {String(value)}
            </option>
          ))}
        </select>
      )}
      {kind === 'number' && <input {...common} type="number" step="any" placeholder={usual} />}
      {kind === 'text' && <input {...common} type="text" placeholder={usual} spellcheck={false} />}
      {(kind === 'lines' || kind === 'json') && (
        <textarea {...common} rows={3} placeholder={kind === 'lines' ? 'one a line' : 'JSON'} spellcheck={false} />
      )}
      {hint && (
        <p class="quiet" id={hint}>
          {property.description}
        </p>
      )}
    </div>
  );
}

type Kind = 'choice' | 'number' | 'text' | 'lines' | 'json';

function kindOf({ type, enum: choices, items, anyOf }: Property): Kind {
  if (choices || type === 'boolean') return 'choice';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'string') return 'text';
  if (type === 'array' && propertySchema.safeParse(items).data?.type === 'string') return 'lines';
  return type === undefined && anyOf === undefined ? 'text' : 'json';
}

function readField(given: FormDataEntryValue | null, property: Property): unknown {
  const text = typeof given === 'string' ? given : '';
  if (text.trim() === '') return undefined;
  const kind = kindOf(property);
  if (kind === 'number') return Number(text);
  if (kind === 'choice') return property.enum ? property.enum.find((value) => String(value) === text) : text === 'true';
  if (kind === 'lines') return text.split('\n').filter((line) => line !== '');
  return kind === 'json' ? readJson(text) : text;
}

/** A word that is no JSON is meant as itself. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (/^[[{"]/.test(text.trim()))
      throw new Error(`${text.slice(0, 60)} is not JSON: check quotes, commas and brackets.`);
    return text;
  }
}
