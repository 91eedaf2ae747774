import { Server } from 'partyserver';

export class Party extends Server {
  static options = { hibernate: true };
  onStart() {
    this.started = true;
  }
  onRequest(request) {
    return Response.json({ name: this.name, started: this.started, query: new URL(request.url).search, connections: [...this.getConnections()].length });
  }
}
