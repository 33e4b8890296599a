// The worker that parses a large JSON text and holds its tree; the page asks for the rows in sight.
import type { Question, Reply } from './json_source.ts';
import { JsonTree } from './json_tree.ts';

let tree = new JsonTree(null);

function answer(question: Question): unknown {
  switch (question.ask) {
    case 'parse':
      tree = new JsonTree(JSON.parse(question.text));
      return null;
    case 'rows':
      return tree.rows(question.from, question.to);
    case 'open':
      tree.setOpen(question.path, question.isOpen);
      return null;
    case 'find':
      return tree.find(question.text);
    case 'reveal':
      return tree.reveal(question.path);
    case 'text':
      return tree.textOf(question.path);
  }
}

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  const reply: Reply = { id: data.id, size: 0, result: null };
  try {
    reply.result = answer(data);
  } catch (error) {
    reply.error = error instanceof Error ? error.message : String(error);
  }
  reply.size = tree.size;
  postMessage(reply);
});
