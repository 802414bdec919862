"""A code server of the usual kind, to measure beside: one kernel, and for every request a new jupyter_client. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from jupyter_client import KernelManager

manager = KernelManager()
manager.start_kernel()


def execute(code):
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        message = client.execute(code)
        text = []
        while True:
            event = client.get_iopub_msg(timeout=60)
            if event["parent_header"].get("msg_id") != message:
                continue
            if event["msg_type"] == "stream":
                text.append(event["content"]["text"])
            if event["msg_type"] == "status" and event["content"]["execution_state"] == "idle":
                return "".join(text)
    finally:
        client.stop_channels()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps({"stdout": execute(body["code"])}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    manager.shutdown_kernel(now=True)
