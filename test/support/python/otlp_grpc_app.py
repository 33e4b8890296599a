# An application with OpenTelemetry's Python exporter for gRPC, configured by environment variables alone.
# Prints its result as one line of JSON.
import json
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
with provider.get_tracer("shop").start_as_current_span("answer") as span:
    span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"})
    span.set_attributes({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20})
    trace_id = format(span.get_span_context().trace_id, "032x")
provider.shutdown()
print(json.dumps({"trace_id": trace_id}))
