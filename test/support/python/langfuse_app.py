# An application with the unmodified Python client of Langfuse, configured by environment variables alone.
# Prints its result as one line of JSON.
import json
from langfuse import get_client, observe, propagate_attributes

client = get_client()


@observe(as_type="tool", name="look-up")
def look_up(sku):
    return "shelf 3"


with client.start_as_current_observation(as_type="span", name="answer-question", input={"q": "Where is it?"}) as root:
    with propagate_attributes(user_id="user-1", session_id="session-1", tags=["beta"], metadata={"region": "eu"}):
        question = [{"role": "user", "content": "Where is it?"}]
        with client.start_as_current_observation(
            as_type="generation", name="ask-model", model="gpt-4o-mini", input=question
        ) as call:
            call.update(
                output={"role": "assistant", "content": "On the shelf"},
                usage_details={
                    "input": 60,
                    "input_cached_tokens": 40,
                    "output": 12,
                    "output_reasoning_tokens": 8,
                    "total": 120,
                },
            )
        look_up(7)
        with client.start_as_current_observation(
            as_type="guardrail", name="check", level="ERROR", status_message="no stock"
        ):
            pass
    root.update(output="On the shelf")
    trace_id = root.trace_id

client.create_score(trace_id=trace_id, name="helpful", value=1, data_type="BOOLEAN", comment="yes")
client.create_prompt(name="greeting", type="text", prompt="Hi {{name}}", labels=["production"])
prompt = client.get_prompt("greeting")
missing = client.get_prompt("missing", fallback="Hello {{name}}", max_retries=0)
client.flush()
client.shutdown()
texts = [prompt.compile(name="Ada"), missing.compile(name="Ada")]
print(json.dumps({"trace_id": trace_id, "version": prompt.version, "texts": texts}))
