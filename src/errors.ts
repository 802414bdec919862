/** Lists everything that can go wrong in one table: its code, its HTTP status, its exit code. The message says what to do. */

const TABLE = {
  invalid_input: { status: 400, exit: 2 },
  unauthorized: { status: 401, exit: 77 },
  forbidden: { status: 403, exit: 77 },
  unknown_language: { status: 400, exit: 2 },
  invalid_entity: { status: 422, exit: 2 },
  unknown_runtime: { status: 404, exit: 2 },
  runtime_missing: { status: 503, exit: 69 },
  unknown_file: { status: 404, exit: 2 },
  too_large: { status: 413, exit: 2 },
  rate_limited: { status: 429, exit: 75 },
  storage_full: { status: 507, exit: 73 },
  unknown_session: { status: 404, exit: 2 },
  unknown_execution: { status: 404, exit: 2 },
  unknown_variable: { status: 404, exit: 2 },
  unknown_tool: { status: 404, exit: 2 },
  unreadable_value: { status: 422, exit: 65 },
  session_busy: { status: 409, exit: 75 },
  interpreter_outdated: { status: 409, exit: 69 },
  unknown_interpreter: { status: 404, exit: 2 },
  interpreter_exists: { status: 409, exit: 2 },
  interpreter_failed: { status: 502, exit: 70 },
  sandbox_unavailable: { status: 503, exit: 69 },
  python_missing: { status: 503, exit: 69 },
  python_too_old: { status: 422, exit: 2 },
  folder_unusable: { status: 500, exit: 73 },
  newer_data: { status: 500, exit: 65 },
  unreadable_file: { status: 500, exit: 65 },
  no_server: { status: 503, exit: 69 },
  ambiguous_server: { status: 409, exit: 2 },
  inside_session: { status: 409, exit: 2 },
  bad_model: { status: 422, exit: 65 },
  unknown_model: { status: 404, exit: 2 },
  unknown_capture: { status: 404, exit: 2 },
  unknown_probe: { status: 404, exit: 2 },
  unknown_sae: { status: 404, exit: 2 },
  download_failed: { status: 502, exit: 69 },
  lab_unreachable: { status: 502, exit: 69 },
  lab_changed: { status: 409, exit: 65 },
  unknown_call: { status: 404, exit: 2 },
  call_over: { status: 410, exit: 2 },
  internal: { status: 500, exit: 70 },
} as const;

export type ErrorCode = keyof typeof TABLE;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(TABLE, code);
}

export const ERROR_CODES = Object.keys(TABLE).filter(isErrorCode);

/** An error that a user can act on: what happened, with what, and what to do next. */
export class CuvetteError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CuvetteError';
    this.code = code;
  }

  get status(): number {
    return TABLE[this.code].status;
  }

  get exitCode(): number {
    return TABLE[this.code].exit;
  }
}

export function toCuvetteError(error: unknown): CuvetteError {
  if (error instanceof CuvetteError) return error;
  return new CuvetteError('internal', messageOf(error), { cause: error });
}

/** The code that the operating system or a library gave an error, if there is one. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
