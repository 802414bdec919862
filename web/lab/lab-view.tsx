export function LabView({ page }: { page: string | undefined }) {
  return <main class="page">{page}</main>;
}
