package stage

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quiesce/quiesce/codecs"
)

// span is the trace of one record; without a tracer it does nothing.
type span struct{ trace.Span }

func (w *wrapper) start(ctx context.Context, r *Record, tag *codecs.Tag) (context.Context, span) {
	if w.tracer == nil {
		return ctx, span{}
	}
	if tag.Trace != "" {
		carrier := propagation.MapCarrier{codecs.HeaderTraceparent: tag.Trace}
		ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	}
	ctx, s := w.tracer.Start(ctx, w.stage+" process", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.destination.name", r.Topic),
		attribute.Int("messaging.destination.partition.id", int(r.Partition)),
		attribute.Int64("messaging.kafka.offset", r.Offset),
		attribute.String("quiesce.batch_id", r.Batch),
		attribute.String("quiesce.run", r.Run),
		attribute.Int64("quiesce.index", int64(r.Index)),
	))
	return ctx, span{s}
}

// traceparent is the header for the children: "" = that of the record.
func (s span) traceparent() string {
	if s.Span == nil || !s.SpanContext().IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.Span), carrier)
	return carrier[codecs.HeaderTraceparent]
}

func (s span) end(v verdict, err error) {
	if s.Span == nil {
		return
	}
	s.SetAttributes(attribute.String("quiesce.outcome", v.outcome.String()))
	if err != nil || v.outcome == codecs.Failed {
		s.SetStatus(codes.Error, v.reason)
	}
	s.End()
}
