export function OperateView() {
  return <main class="page" />;
}
