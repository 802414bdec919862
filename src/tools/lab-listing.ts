/** Whether a caller is shown the lab's tools: every agent pays for each definition, so all but the way in wait until the lab is asked for. */

export interface LabListing {
  /** Whether all of the lab's tools are listed. */
  isOpen(): boolean;
  /** Lists them from now on; true if they were not listed before. */
  open(): boolean;
}

/** As the setting `tools` says: with all of them from the start, or not. */
export function createLabListing(tools: 'auto' | 'all'): LabListing {
  let isOpen = tools === 'all';
  return {
    isOpen: () => isOpen,
    open() {
      const isNews = !isOpen;
      isOpen = true;
      return isNews;
    },
  };
}
