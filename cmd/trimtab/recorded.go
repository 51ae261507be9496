package main

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/collector/spanfile"
	"github.com/trimtab/trimtab/internal/hint"
)

const traceFileHint = "files are traces as Jaeger, Zipkin, Tempo, Grafana, Elasticsearch or the OpenTelemetry Collector's file exporter have them: docs/traces.md lists what is read"

// recorded describes trace files, besides their requests.
type recorded struct {
	// sampled is the number of requests in the files; requests is the number for which they stand,
	// which is larger if a sampler recorded its threshold.
	sampled  int
	requests float64
	// flagged counts spans that were mended or set aside, by kind of fault.
	flagged map[string]uint64
	// which parts of the files were left out, and why
	notes []string
}

// readTraces calls each with every request of the files. It reads all files first, as a trace may
// be spread over several.
func readTraces(ctx context.Context, files []string, each func(*path.Request)) (recorded, error) {
	out := recorded{flagged: map[string]uint64{}}
	reader := spanfile.NewReader(spanfile.Options{})
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if err := reader.Open(file); err != nil {
			return out, hint.Add(err, "%s", traceFileHint)
		}
	}
	r, err := split(reader, &out, each)
	if err != nil {
		return out, fmt.Errorf("read recordings: %w", err)
	}
	for kind, n := range map[string]uint64{"rejected": r.Rejected, "repeated": r.Repeated} {
		if n > 0 {
			out.flagged[kind] += n
		}
	}
	if out.notes = r.Notes; r.Spans == 0 {
		return out, hint.Add(trimtab.Invalidf("no span in %d files: the lists of traces in them are empty", len(files)), "%s", traceFileHint)
	}
	if out.sampled == 0 {
		return out, hint.Add(trimtab.Invalidf("no request in %d files: no span without a parent has a duration", len(files)), "%s", traceFileHint)
	}
	return out, nil
}

// split joins the spans of a recording, some traces at a time, without timeouts and without a
// limit on spans.
func split(reader *spanfile.Reader, out *recorded, each func(*path.Request)) (*spanfile.Recording, error) {
	room := max(1, reader.Spans())
	p, err := path.New(path.Config{
		Discover: true, MaxSpans: room, MaxSpansPerTrace: room, MaxTraces: room, MaxWorkloads: 1 << 16, MaxComponents: 1 << 20,
		Every: 24 * time.Hour, Timeout: time.Hour, Settle: time.Hour, Grace: time.Hour,
		Requests: func(q *path.Request) { out.sampled++; out.requests += q.Adjusted; each(q) },
	})
	if err != nil {
		return nil, err
	}
	now := time.Unix(0, 0)
	r := reader.Frames(func(frames []*trimtab.SpanFrame) {
		for _, frame := range frames {
			p.Step(now, frame)
		}
		p.Flush(now)
	})
	p.Counts(func(name string, value float64, labels ...string) {
		if name == "trimtab_path_duplicate_spans_total" && value > 0 {
			out.flagged["repeated"] += uint64(value) // with another content
		}
		// In a recording no span can be late or in the future.
		if name == "trimtab_path_flagged_spans_total" && value > 0 && labels[0] != "late" && labels[0] != "clock" {
			out.flagged[labels[0]] += uint64(value)
		}
	})
	return r, nil
}
