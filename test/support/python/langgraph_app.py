# A graph of LangGraph that traces itself by the environment variables of LangSmith alone. UPSTREAM_URL is
# a model server. Prints its result as one line of JSON.
import json
import os
import uuid
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langsmith.run_trees import get_cached_client

model = ChatOpenAI(model="gpt-4o-mini", api_key="none", base_url=os.environ["UPSTREAM_URL"])
graph = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_edge(START, "agent")
graph.add_edge("agent", END)
run_id = uuid.uuid4()
messages = [{"role": "user", "content": "Hello"}]
graph.compile().invoke({"messages": messages}, {"run_id": run_id, "metadata": {"thread_id": "thread-1"}})
get_cached_client().flush()
print(json.dumps({"trace_id": str(run_id)}))
