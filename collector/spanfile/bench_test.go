package spanfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

// many are n traces in the form of a document with one: its ids and times differ.
func many(n int, doc, between string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(strings.ReplaceAll(doc, traceID, fmt.Sprintf("%032x", (i+1)*2654435761)))
	}
	return b.String()
}

// BenchmarkRead reads files and joins their spans. 10,000 traces of three spans are
// a tenth of those for which trimtab blame shall take at most 3 s and 256 MiB.
func BenchmarkRead(b *testing.B) {
	const n = 10_000
	for name, doc := range map[string]string{
		"jaeger":        `{"data":[` + many(n, jaegerTraceDoc(), ",") + `]}`,
		"otlp":          `{"resourceSpans":[` + many(n, strings.Join(resources(same, "scopeSpans"), ","), ",") + `]}`,
		"otlp lines":    many(n, otlpRequest("resourceSpans"), "\n") + "\n",
		"zipkin":        `[` + many(n, strings.Trim(zipkinDoc(), "[]"), ",") + `]`,
		"elasticsearch": many(n, strings.Join(hits(listed), "\n"), "\n") + "\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(Options{})
				if err := r.Read(strings.NewReader(doc)); err != nil {
					b.Fatal(err)
				}
				if found := r.Frames(func([]*trimtab.SpanFrame) {}); found.Spans != 3*n {
					b.Fatalf("%d spans", found.Spans)
				}
			}
		})
	}
}
