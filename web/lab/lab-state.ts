/** Keeps what the lab's view has found while the page is open: which lab it looks at, and the records of runs that were made or opened here. */

import { signal } from '@preact/signals';
import type { LabRecord } from './records.ts';

export interface KeptRecord {
  id: number;
  name: string;
  record: LabRecord;
}

export const labState = {
  sessionName: signal('default'),
  records: signal<readonly KeptRecord[]>([]),
  /** Up to two, side by side. */
  shown: signal<readonly number[]>([]),
  /** Counts what may have changed in the lab. */
  changed: signal(0),
};

export function keepRecord(name: string, record: LabRecord): void {
  const id = (labState.records.value.at(-1)?.id ?? 0) + 1;
  labState.records.value = [...labState.records.value, { id, name, record }];
  labState.shown.value = [id];
}

/** The last two that were chosen are shown. */
export function toggleShown(id: number): void {
  const { shown } = labState;
  shown.value = shown.value.includes(id) ? shown.value.filter((one) => one !== id) : [...shown.value, id].slice(-2);
}
