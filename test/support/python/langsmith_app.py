# An application with the unmodified Python client of LangSmith, configured by environment variables alone.
# Prints its result as one line of JSON.
import json
from langsmith import Client, get_current_run_tree, traceable
from langsmith.run_trees import get_cached_client

client = Client()


@traceable(run_type="tool", name="look-up")
def look_up(sku):
    return "shelf of " + sku


@traceable(run_type="llm", name="ask-model", metadata={"ls_provider": "openai", "ls_model_name": "gpt-4o-mini"})
def ask(messages):
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    return {"role": "assistant", "content": "It is 1", "usage_metadata": usage}


seen = {}


@traceable(name="agent", tags=["beta"], metadata={"user_id": "user-4", "session_id": "session-4"})
def agent(question):
    seen["trace_id"] = str(get_current_run_tree().trace_id)
    look_up("sku-7")
    return ask([{"role": "user", "content": question}])["content"]


agent("How many?")
trace_id = seen["trace_id"]
client.create_feedback(run_id=trace_id, trace_id=trace_id, session_id=trace_id, key="helpful", score=1)
client.flush()
get_cached_client().flush()
print(json.dumps({"trace_id": trace_id}))
