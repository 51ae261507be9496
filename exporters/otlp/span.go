package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab"
)

// maxLinks bounds the links of one trace, maxListed the workloads that its
// root names.
const maxLinks, maxListed = 64, 64

// ids derives the trace ID of a decision from its plan, so that anyone can compute it. The salt
// separates processes that number their plans from the start.
type ids struct{ salt [16]byte }

type keyInContext struct{}

func (g ids) trace(k key) (id trace.TraceID) {
	h := sha256.New()
	h.Write(g.salt[:])
	h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, k.epoch), k.sequence))
	h.Write([]byte(k.pool))
	copy(id[:], h.Sum(nil))
	return id
}

// NewIDs implements the SDK's IDGenerator. The plan's key comes in the context, the only input
// that the SDK passes on.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	k, _ := ctx.Value(keyInContext{}).(key)
	id := g.trace(k)
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements the SDK's IDGenerator.
func (g ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], 1+rand.Uint64N(1<<64-1))
	return id
}

// span is one span of a trace; from and to are the values' own times.
type span struct {
	name       string
	from, to   time.Time
	attributes []attribute.KeyValue
}

// child writes one child span. fill may add to it.
func child(ctx context.Context, t trace.Tracer, s span, fill func(trace.Span)) {
	_, out := t.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithAttributes(s.attributes...))
	if fill != nil {
		fill(out)
	}
	out.End(trace.WithTimestamp(later(s.from, s.to)))
}

// later keeps a span from ending before it begins, when hosts' clocks differ.
func later(a, b time.Time) time.Time {
	if b.Before(a) {
		return a
	}
	return b
}

// write writes the trace of d and returns the context of its root.
func (d *decision) write(t trace.Tracer) context.Context {
	from := d.began()
	ctx, root := t.Start(context.WithValue(context.Background(), keyInContext{}, d.key), "decision",
		trace.WithNewRoot(), trace.WithTimestamp(from), trace.WithLinks(d.links()...), trace.WithAttributes(d.attributes()...))
	before := from
	for _, p := range d.steps {
		for i := range p.Actions {
			d.writeInputs(ctx, t, p, &p.Actions[i])
			if e := d.estimates[p.Actions[i].Workload]; e != nil && p.Step == 1 {
				before = later(before, e.Time)
			}
		}
		writePlan(ctx, t, p, before)
		before = p.Time
	}
	failed := false
	for _, o := range d.outcomes {
		failed = writeEffect(ctx, t, o) || failed
	}
	if failed {
		root.SetStatus(codes.Error, "an action failed or was refused")
	}
	root.End(trace.WithTimestamp(later(from, d.ended())))
	return ctx
}

// links point to the slow requests of the workloads that were acted on.
func (d *decision) links() []trace.Link {
	var out []trace.Link
	seen := map[string]bool{}
	for _, p := range d.steps {
		for i := range p.Actions {
			e := d.estimates[p.Actions[i].Workload]
			if e == nil || seen[e.Workload] {
				continue
			}
			seen[e.Workload] = true
			for _, x := range e.Exemplars {
				traceID, err1 := trace.TraceIDFromHex(x.TraceID)
				spanID, err2 := trace.SpanIDFromHex(x.SpanID)
				if err1 != nil || err2 != nil || len(out) == maxLinks {
					continue
				}
				out = append(out, trace.Link{
					SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, Remote: true}),
					Attributes:  []attribute.KeyValue{attribute.String("trimtab.workload", e.Workload), attribute.Float64("trimtab.latency_s", float64(x.Latency))},
				})
			}
		}
	}
	return out
}

// attributes returns the attributes of the root span. Its lists are parallel: the first entries
// belong to the first workload.
func (d *decision) attributes() []attribute.KeyValue {
	first, complete := d.steps[0], d.complete()
	var workloads, bindings, before, set, target []string
	for _, p := range d.steps {
		for i := range p.Actions {
			if a := &p.Actions[i]; len(workloads) < maxListed {
				workloads = append(workloads, a.Workload)
				bindings = append(bindings, a.Why.Binding.String())
				before = append(before, a.Expect.String())
				set = append(set, a.Set.String())
				target = append(target, amountOr(a.Why.Target))
			}
		}
	}
	return append(identity(first),
		attribute.String("trimtab.cause", first.Cause.String()),
		attribute.String("trimtab.objective", first.Objective),
		attribute.Float64("trimtab.capacity", first.Capacity),
		attribute.Bool("trimtab.complete", complete),
		attribute.StringSlice("trimtab.workloads", workloads),
		attribute.StringSlice("trimtab.binding", bindings),
		attribute.StringSlice("trimtab.before", before),
		attribute.StringSlice("trimtab.set", set),
		attribute.StringSlice("trimtab.target", target),
	)
}

func amountOr(v *float64) string {
	if v == nil {
		return "none"
	}
	return trimtab.Units(*v).String()
}

func identity(p *trimtab.Plan) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("trimtab.pool", p.Pool),
		attribute.String("trimtab.plan", p.ID()),
		attribute.Int64("trimtab.epoch", int64(p.Epoch)),
		attribute.Int64("trimtab.sequence", int64(p.Sequence)),
	}
}

// writeInputs writes the inputs of one action.
func (d *decision) writeInputs(ctx context.Context, t trace.Tracer, p *trimtab.Plan, a *trimtab.Action) {
	at := d.sampled(p, a)
	e := d.estimates[a.Workload]
	until, inputs := p.Time, a.Why.Inputs
	if e != nil {
		until, inputs = e.Time, e.Inputs
	}
	workload := attribute.String("trimtab.workload", a.Workload)
	sample := span{"sample", at, until, []attribute.KeyValue{workload, attribute.Float64("trimtab.age_s", until.Sub(at).Seconds())}}
	for _, in := range inputs {
		name := "trimtab.input." + in.Name
		if in.Missing != "" {
			sample.attributes = append(sample.attributes, attribute.String(name+".missing", in.Missing))
			continue
		}
		sample.attributes = append(sample.attributes, attribute.Float64(name, in.Value), attribute.Float64(name+".age_s", float64(in.Age)))
		if in.Source != "" {
			sample.attributes = append(sample.attributes, attribute.String(name+".source", in.Source))
		}
	}
	child(ctx, t, sample, nil)
	if e == nil {
		return
	}
	estimate := span{"estimate", e.Time, p.Time, []attribute.KeyValue{workload,
		attribute.String("trimtab.model", e.Model), attribute.Int("trimtab.reports", e.Reports)}}
	if e.Load != nil {
		estimate.attributes = append(estimate.attributes, attribute.Float64("trimtab.load", e.Load.Now),
			attribute.Float64("trimtab.load_upper", e.Load.Upper), attribute.String("trimtab.forecast", e.Load.Model))
	}
	if e.Performance != nil {
		estimate.attributes = append(estimate.attributes, attribute.Float64("trimtab.performance", *e.Performance))
	}
	if e.Hold != nil {
		estimate.attributes = append(estimate.attributes, attribute.String("trimtab.hold", e.Hold.Text))
	}
	child(ctx, t, estimate, nil)
}

// writePlan writes one step, with an event for each action.
func writePlan(ctx context.Context, t trace.Tracer, p *trimtab.Plan, from time.Time) {
	if from.After(p.Time) {
		from = p.Time
	}
	s := span{"plan", from, p.Time, append(identity(p), attribute.Int("trimtab.step", p.Step), attribute.String("trimtab.cause", p.Cause.String()))}
	child(ctx, t, s, func(out trace.Span) {
		for i := range p.Actions {
			a := &p.Actions[i]
			event := []attribute.KeyValue{
				attribute.String("trimtab.workload", a.Workload), attribute.String("host.name", a.Host),
				attribute.String("trimtab.resource", a.Resource), attribute.String("trimtab.mode", string(a.Mode)),
				attribute.String("trimtab.before", a.Expect.String()), attribute.String("trimtab.set", a.Set.String()),
				attribute.String("trimtab.target", amountOr(a.Why.Target)), attribute.String("trimtab.demand", amountOr(a.Why.Demand)),
				attribute.String("trimtab.binding", a.Why.Binding.String()), attribute.String("trimtab.why", a.Why.Summary),
			}
			out.AddEvent("action", trace.WithTimestamp(p.Time), trace.WithAttributes(event...))
		}
	})
}

// writeEffect writes the answer of one host, and reports whether it failed.
func writeEffect(ctx context.Context, t trace.Tracer, o *trimtab.Outcome) (failed bool) {
	s := span{"effect", o.Time.Add(-o.Took.Duration()), o.Time, []attribute.KeyValue{
		attribute.String("host.name", o.Host), attribute.Int("trimtab.step", o.Step),
	}}
	bad := func(r trimtab.Result) bool { return r.Status == trimtab.Failed || r.Status == trimtab.Refused }
	failed = o.Refused != "" || slices.ContainsFunc(o.Results, bad)
	child(ctx, t, s, func(out trace.Span) {
		for _, r := range o.Results {
			event := []attribute.KeyValue{
				attribute.String("trimtab.workload", r.Workload), attribute.String("trimtab.resource", r.Resource),
				attribute.String("trimtab.status", string(r.Status)), attribute.String("trimtab.before", r.Before.String()),
				attribute.String("trimtab.set", r.Asked.String()),
			}
			if r.Known {
				event = append(event, attribute.String("trimtab.found", r.Found.String()))
			}
			if r.Reason != "" {
				event = append(event, attribute.String("trimtab.reason", r.Reason))
			}
			out.AddEvent("result", trace.WithTimestamp(o.Time), trace.WithAttributes(event...))
			if bad(r) {
				out.SetStatus(codes.Error, r.Reason)
			}
		}
		if o.Refused != "" {
			out.SetStatus(codes.Error, o.Refused)
		}
	})
	return failed
}
