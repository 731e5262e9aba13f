import process from 'node:process';
import express from 'express';
import { createGateway } from 'recruiting-subgraph';

const gateway = await createGateway({ settings: process.env });

const app = express();
app.get('/', (_request, response) => void response.send('Our application'));
app.use('/graphql', gateway.handler);
// Behind the gateway, which reads its bodies itself.
app.use(express.json());

const server = app.listen(Number(process.env['PORT'] ?? 4000), () => console.log(server.address()));

// The last requests are answered first. Then a token pair that is under way is saved.
process.once('SIGTERM', () => void server.close(() => void gateway.close()));
