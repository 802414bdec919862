/** Shows the evidence of runs that were made here or opened from files: one, or two beside each other. */

import { useState } from 'preact/hooks';
import { Icon } from '../shell/icons.tsx';
import { linkTo } from '../state/route.ts';
import { keepRecord, labState, toggleShown } from './lab-state.ts';
import { nameRecord, readRecord } from './records.ts';
import { ReportView } from './report-view.tsx';

export function Verdicts() {
  const [problem, setProblem] = useState<string>();
  const records = labState.records.value;
  const shown = labState.shown.value;

  async function open(files: FileList | null): Promise<void> {
    setProblem(undefined);
    for (const file of files ?? []) {
      try {
        const record = readRecord(recordIn(await file.text()));
        keepRecord(nameRecord(record), record);
      } catch (error) {
        setProblem(
          `${file.name} has no record that can be drawn: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`,
        );
      }
    }
  }

  return (
    <>
      <div class="verdict-list">
        {records.map(({ id, name }) => (
          <label key={id} class="text-button">
            <input type="checkbox" checked={shown.includes(id)} onChange={() => toggleShown(id)} /> {name}
          </label>
        ))}
        <label class="text-button">
          <Icon name="upload" /> Open a record or a report
          <input
            type="file"
            multiple
            accept=".json,.html"
            class="unseen"
            onChange={({ currentTarget }) => void open(currentTarget.files)}
          />
        </label>
      </div>
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      {records.length === 0 && (
        <div class="empty">
          <h2>No verdict here yet</h2>
          <p>
            <a href={linkTo({ view: 'lab', page: 'run:causality_protocol' })}>Run the causality protocol</a>, or open
            the record of one: the file that <code>causality_protocol</code> names as <code>record_file</code>, or a
            report page that it wrote. Two of them stand side by side.
          </p>
        </div>
      )}
      <div class={shown.length > 1 ? 'verdicts two' : 'verdicts'}>
        {records
          .filter(({ id }) => shown.includes(id))
          .map(({ id, record }) => (
            <ReportView key={id} record={record} />
          ))}
      </div>
    </>
  );
}

/** A report page has its record in it. */
function recordIn(text: string): unknown {
  const inPage = /href="data:application\/json;base64,([^"]+)"/.exec(text)?.[1];
  if (inPage === undefined) return JSON.parse(text);
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(inPage), (character) => character.charCodeAt(0))));
}
