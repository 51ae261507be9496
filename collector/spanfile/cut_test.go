package spanfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/collector/internal/spantest"
)

func TestOfADocumentThatIsCutTheWholeElementsAreRead(t *testing.T) {
	otlp, jaeger, zipkin := resources(same, "scopeSpans"), jaegerTraceDoc(), zipkinDoc()
	var lines bytes.Buffer
	if err := json.Indent(&lines, []byte(`{"data":[`+jaeger+","+jaeger+"]}"), "", "  "); err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]string{
		"Jaeger":                       `{"data":[` + jaeger + "," + jaeger[:len(jaeger)-60],
		"Jaeger, behind a comma":       `{"data":[` + jaeger + ",",
		"Jaeger, many lines":           lines.String()[:lines.Len()-60],
		"OTLP":                         `{"resourceSpans":[` + otlp[0] + "," + otlp[1] + "," + otlp[0][:len(otlp[0])/2],
		"OTLP, the brackets are gone":  `{"resourceSpans":[` + otlp[0] + "," + otlp[1],
		"Zipkin":                       strings.TrimSuffix(zipkin, "]") + `,{"traceId":"12`,
		"Zipkin, the bracket is gone":  strings.TrimSuffix(zipkin, "]"),
		"Jaeger, the bracket is gone":  `{"data":[` + jaeger,
		"a list of answers of a store": `[{"data":[` + jaeger + `]},{"data":[` + jaeger[:99],
	} {
		r, err := readAll(Options{}, doc)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(request(), spantest.Unpack(r.Frames)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "the text is cut, and what stands whole before the cut is read: line ") {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}
