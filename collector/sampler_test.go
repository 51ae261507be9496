package collector_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/collector/jaeger"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/spanfile"
	"github.com/trimtab/trimtab/collector/zipkin"
)

// note is an attribute in which a sampler notes something: a text, or a number.
type note struct {
	key   string
	value any
}

// sampledForms are a SERVER span without parent and its child, with notes at the first, in
// the form of each protocol; and as files.
func sampledForms(t *testing.T, notes []note) (live map[string]func(p *collector.Packer) error, files map[string]string) {
	t.Helper()
	const trace, root, child = "5b8efff798038103d269b633813fc60c", "00000000000000a1", "00000000000000a2"
	var attributes, tags []string
	texts := map[string]string{}
	list := model.KeyValues{model.String("span.kind", "server")}
	for _, n := range notes {
		texts[n.key] = fmt.Sprint(n.value)
		kind, of, value := "string", "stringValue", fmt.Sprintf("%q", n.value)
		tag := model.String(n.key, fmt.Sprint(n.value))
		switch v := n.value.(type) {
		case float64:
			kind, of, value, tag = "float64", "doubleValue", fmt.Sprint(v), model.Float64(n.key, v)
		case int:
			kind, of, value, tag = "int64", "intValue", fmt.Sprint(v), model.Int64(n.key, int64(v))
		}
		attributes = append(attributes, fmt.Sprintf(`{"key":%q,"value":{%q:%s}}`, n.key, of, value))
		tags = append(tags, fmt.Sprintf(`{"key":%q,"type":%q,"value":%s}`, n.key, kind, value))
		list = append(list, tag)
	}
	var zipkinTags []string
	for key, text := range texts {
		zipkinTags = append(zipkinTags, fmt.Sprintf("%q:%q", key, text))
	}
	requestJSON := fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[
		{"traceId":%q,"spanId":%q,"kind":2,"startTimeUnixNano":"1000000","endTimeUnixNano":"9000000","attributes":[%s]},
		{"traceId":%q,"spanId":%q,"parentSpanId":%q,"kind":1,"startTimeUnixNano":"2000000","endTimeUnixNano":"3000000"}]}]}]}`, trace, root, strings.Join(attributes, ","), trace, child, root)
	zipkinJSON := fmt.Sprintf(`[{"traceId":%q,"id":%q,"kind":"SERVER","timestamp":1000,"duration":8000,"tags":{%s}},{"traceId":%q,"id":%q,"parentId":%q,"timestamp":2000,"duration":1000,"tags":{"span.kind":"internal"}}]`,
		trace, root, strings.Join(zipkinTags, ","), trace, child, root)
	jaegerJSON := fmt.Sprintf(`{"data":[{"spans":[{"traceID":%q,"spanID":%q,"startTime":1000,"duration":8000,"tags":[{"key":"span.kind","value":"server"},%s]},
		{"traceID":%q,"spanID":%q,"references":[{"refType":"CHILD_OF","traceID":%q,"spanID":%q}],"startTime":2000,"duration":1000,"tags":[{"key":"span.kind","value":"internal"}]}]}]}`,
		trace, root, strings.Join(tags, ","), trace, child, trace, root)
	batch := &api_v2.PostSpansRequest{Batch: model.Batch{Process: &model.Process{}, Spans: []*model.Span{
		{TraceID: model.NewTraceID(0x5b8efff798038103, 0xd269b633813fc60c), SpanID: 0xa1, StartTime: time.UnixMilli(1), Duration: 8 * time.Millisecond, Tags: list}}}}
	return map[string]func(p *collector.Packer) error{
		"OTLP's JSON": func(p *collector.Packer) error {
			return otlp.ScanJSON([]byte(requestJSON), &collector.ResourceCache{}, p)
		},
		"OTLP": func(p *collector.Packer) error {
			var r collectorpb.ExportTraceServiceRequest
			// protojson has ids in base64: they are set apart.
			if err := protojson.Unmarshal([]byte(strings.NewReplacer(trace, "W47/95gDgQPSabYzgT/GDA==", root, "AAAAAAAAAKE=", child, "AAAAAAAAAKI=").Replace(requestJSON)), &r); err != nil {
				return err
			}
			b, err := proto.Marshal(&r)
			if err != nil {
				return err
			}
			return otlp.ScanRequest(b, &collector.ResourceCache{}, p)
		},
		"Zipkin": func(p *collector.Packer) error {
			return zipkin.ScanJSON([]byte(zipkinJSON), &collector.ResourceCache{}, p)
		},
		"Jaeger": func(p *collector.Packer) error {
			b, err := batch.Marshal()
			if err != nil {
				return err
			}
			return jaeger.ScanRequest(b, &collector.ResourceCache{}, p)
		},
	}, map[string]string{"OTLP": requestJSON, "Zipkin": zipkinJSON, "Jaeger": jaegerJSON}
}

func TestWhatASamplerNotesAtTheRootIsTheWeightOfItsTraceInEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		notes []note
		want  float32
	}{
		"probabilistic":            {[]note{{"sampler.type", "probabilistic"}, {"sampler.param", 0.125}}, 8},
		"probabilistic, a text":    {[]note{{"sampler.param", "0.25"}, {"sampler.type", "probabilistic"}}, 4},
		"probabilistic, all":       {[]note{{"sampler.type", "probabilistic"}, {"sampler.param", 1}}, 1},
		"traces a second":          {[]note{{"sampler.type", "ratelimiting"}, {"sampler.param", 0.5}}, 0},
		"at least so many":         {[]note{{"sampler.type", "lowerbound"}, {"sampler.param", 0.001}}, 0},
		"all of them":              {[]note{{"sampler.type", "const"}, {"sampler.param", "true"}}, 0},
		"a probability":            {[]note{{"sampling.probability", 0.5}}, 2},
		"a percentage":             {[]note{{"microsoft.sample_rate", 12.5}}, 8},
		"a count":                  {[]note{{"SampleRate", 20}}, 20},
		"a count, the other key":   {[]note{{"sampler.adjusted_count", "16"}}, 16},
		"no probability":           {[]note{{"sampling.probability", 0.0}}, 0},
		"more than a probability":  {[]note{{"sampling.probability", 50.0}}, 0},
		"a count of less than one": {[]note{{"SampleRate", 0.5}}, 0},
		"a tracestate counts":      {[]note{{"w3c.tracestate", "ot=th:8"}, {"SampleRate", 20}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(form string, s spantest.Span) {
				t.Helper()
				if strings.Contains(form, "OTLP") && name == "a tracestate counts" {
					return // it has a field of its own
				}
				want, flag := c.want, trimtab.FlagAdjusted
				if want == 0 {
					want, flag = 1, 0
				}
				if s.Adjusted != want || s.Flags&trimtab.FlagAdjusted != flag {
					t.Errorf("%s: %x stands for %v, flags %b, want %v", form, s.SpanID, s.Adjusted, s.Flags, want)
				}
			}
			live, files := sampledForms(t, c.notes)
			for form, scan := range live {
				p := collector.NewPacker(1)
				if err := scan(p); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				check(form, spantest.Unpack(p.Frames())[0])
			}
			for form, doc := range files {
				r := spanfile.NewReader(spanfile.Options{})
				if err := r.Read(strings.NewReader(doc)); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				spans := spantest.Unpack(r.Recording().Frames)
				if len(spans) != 2 {
					t.Fatalf("%s: %+v", form, spans)
				}
				for _, s := range spans {
					check("file of "+form, s)
				}
			}
		})
	}
}
