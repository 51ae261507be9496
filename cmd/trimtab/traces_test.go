package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// traceCase is a small input from the folder of cases, with its right answer.
type traceCase struct {
	files    string
	requests float64
	// means are those of components, in ms; others must not be there.
	means map[string]float64
	note  string
}

func traceCases() []traceCase {
	usual := map[string]float64{"web": 16, "shop": 22, "db": 12}
	return []traceCase{
		{"10-tempo-grafana.json", 40, usual, ""},
		{"11-tempo-api-base64.json", 40, usual, ""},
		{"11b-otlp-base64.json", 40, usual, ""},
		{"14-fileexporter-rotated.jsonl", 39, usual, "a line is cut and is passed over: line 40"},
		{"14b-fileexporter-rotated-head.jsonl", 39, usual, "a line is cut and is passed over: line 1"},
		{"16-jaeger-v3.json", 40, usual, ""},
		{"16b-jaeger-v3-stream.jsonl", 40, usual, ""},
		// The parent of its calls of db is in none of its spans.
		{"17-zipkin-v1.json", 40, map[string]float64{"web": 16, "shop": 34}, ""},
		{"23-jaeger-bom.json", 40, usual, ""},
		{"23b-jaeger-utf16.json", 40, usual, ""},
		{"29-split-1.json 29-split-2.json", 40, usual, ""},
		{"29-split-2.json 29-split-1.json", 40, usual, ""},
		{"base-jaeger.json base-jaeger.json", 40, usual, ""},
		{"59-jaeger-dup-in-file.json", 40, usual, ""},
		{"30-root-client-longpoll.json", 40, map[string]float64{"web": 17.4375, "shop": 34}, ""},
		{"31-follows-from.json", 40, map[string]float64{"web": 40}, ""},
	}
}

// cases is the folder of small inputs with their right answers.
func cases(t *testing.T) string {
	t.Helper()
	dir := "../../../shared/cases"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of small inputs is not here")
	}
	return dir
}

func TestSmallInputsOfTracesHaveTheirRightAnswers(t *testing.T) {
	dir := cases(t)
	for _, c := range traceCases() {
		t.Run(c.files, func(t *testing.T) {
			args := []string{"contributions", "-o", "json"}
			for _, file := range strings.Fields(c.files) {
				args = append(args, filepath.Join(dir, file))
			}
			var got contributionsAnswer
			code, out := say(t, args...)
			if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil {
				t.Fatalf("code %d, %v:\n%s", code, err, out)
			}
			if got.Requests != c.requests || len(got.Components) != len(c.means) || !strings.Contains(strings.Join(got.Notes, "\n"), c.note) || c.note == "" && got.Notes != nil {
				t.Errorf("%+v", got)
			}
			for _, k := range got.Components {
				if math.Abs(k.Mean-c.means[k.Name]) > 1e-6 {
					t.Errorf("%s: %g ms, want %g", k.Name, k.Mean, c.means[k.Name])
				}
			}
		})
	}
}

func TestSmallInputsOfIncidentsHaveTheirRightCulprits(t *testing.T) {
	dir := cases(t)
	for _, c := range []struct{ baseline, incident, culprit string }{
		{"17-zipkin-v1.json", "17b-zipkin-v1-slow.json", "shop"},
		{"30-base.json", "30-root-client-longpoll.json", ""},
		{"38-broker-base.json", "38-broker-slow.json", "orders"},
	} {
		var got blameAnswer
		code, out := say(t, "blame", "--baseline", filepath.Join(dir, c.baseline), "--incident", filepath.Join(dir, c.incident), "-o", "json")
		if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil {
			t.Fatalf("code %d, %v:\n%s", code, err, out)
		}
		switch {
		case c.culprit == "" && got.Verdict == "no change":
		case c.culprit == "" || len(got.Components) == 0 || got.Components[0].Name != c.culprit || got.Components[0].Share < 0.9:
			t.Errorf("%s: %s, want %s", c.incident, out, c.culprit)
		}
	}
}

// exported writes requests as the Collector's file exporter does, one a line, with the last
// line cut and one without its beginning; db takes so many ms.
func exported(t *testing.T, n, db int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		span := func(id, parent string, kind, start, end int) string {
			began := 1_800_000_000_000_000_000 + int64(i)*50_000_000
			return fmt.Sprintf(`{"traceId":"%032x","spanId":"000000000000000%s","parentSpanId":"%s","kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}`,
				i+1, id, parent, kind, began+int64(start)*1_000_000, began+int64(end)*1_000_000)
		}
		of := func(service, spans string) string {
			return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},"scopeSpans":[{"scope":{},"spans":[%s]}]}`, service, spans)
		}
		took := db + i%3
		line := fmt.Sprintf(`{"resourceSpans":[%s,%s]}`, of("web", span("a", "", 2, 0, took+4)+","+span("b", "000000000000000a", 3, 1, took+3)), of("db", span("c", "000000000000000b", 2, 2, took+2)))
		if i == 0 {
			b.WriteString(line[len(line)/2:] + "\n")
		}
		b.WriteString(line + "\n")
		if i == n-1 {
			b.WriteString(line[:len(line)/2])
		}
	}
	name := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBlameReadsWholeLinesOfARotatedFileAndTellsOfOthers(t *testing.T) {
	before, after := exported(t, 100, 10), exported(t, 100, 90)
	code, out := say(t, "blame", "--baseline", before, "--incident", after)
	if code != exitDone || !strings.Contains(out, "changed: 100% of 100 requests") || !strings.Contains(out, "db         99%") {
		t.Errorf("code %d:\n%s", code, out)
	}
	for _, file := range []string{before, after} {
		if !strings.Contains(out, "note: "+file+": 2 lines are cut or no whole JSON and are passed over, the first of them: line 1, byte 0: ") {
			t.Errorf("no note of %s:\n%s", file, out)
		}
	}
}

func TestAFileThatIsNotReadIsCalledByItsName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "search.json")
	if err := os.WriteFile(file, []byte(`{"traces":[{"traceID":"1","rootServiceName":"web"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := say(t, "contributions", file)
	if code != exitError || !strings.Contains(out, file+": line 1, byte 11: this is results of a search of Tempo, which have no spans: download each trace") || !strings.Contains(out, "hint: ") {
		t.Errorf("code %d:\n%s", code, out)
	}
}

// sampledFiles are n requests web -> db of which a sampler kept one in four, as stores have
// them, with what it noted at the root, or at each span.
func sampledFiles(t *testing.T, n, db int) map[string]string {
	t.Helper()
	var resources, jaeger, zipkin [][]string
	for i := range n {
		trace, began, took := fmt.Sprintf("%032x", i+1), 1_800_000_000_000_000+int64(i)*50_000, int64(1000*(db+i%3))
		var byService [2]string
		var zipkins, jaegers []string
		for k, s := range []struct {
			id, parent, service, kind string
			number                    int
			from, to                  int64
		}{{"a", "", "web", "server", 2, 0, took + 4000}, {"b", "a", "web", "client", 3, 1000, took + 3000}, {"c", "b", "db", "server", 2, 2000, took + 2000}} {
			id, parent, reference := "000000000000000"+s.id, "", ""
			if s.parent != "" {
				parent = "000000000000000" + s.parent
				reference = fmt.Sprintf(`{"refType":"CHILD_OF","traceID":%q,"spanID":%q}`, trace, parent)
			}
			tags, texts := "", ""
			if k == 0 {
				tags, texts = `,{"key":"sampler.type","type":"string","value":"probabilistic"},{"key":"sampler.param","type":"float64","value":0.25}`, `"sampler.type":"probabilistic","sampler.param":"0.25"`
			}
			of := &byService[min(1, k/2)]
			if *of != "" {
				*of += ","
			}
			*of += fmt.Sprintf(`{"traceId":%q,"spanId":%q,"parentSpanId":%q,"kind":%d,"traceState":"STATE","startTimeUnixNano":"%d000","endTimeUnixNano":"%d000"}`, trace, id, parent, s.number, began+s.from, began+s.to)
			jaegers = append(jaegers, fmt.Sprintf(`{"traceID":%q,"spanID":%q,"references":[%s],"startTime":%d,"duration":%d,"processID":%q,"tags":[{"key":"span.kind","value":%q}%s]}`, trace, id, reference, began+s.from, s.to-s.from, s.service, s.kind, tags))
			zipkins = append(zipkins, strings.ReplaceAll(fmt.Sprintf(`{"traceId":%q,"id":%q,"parentId":%q,"kind":%q,"timestamp":%d,"duration":%d,"localEndpoint":{"serviceName":%q},"tags":{%s}}`, trace, id, parent, strings.ToUpper(s.kind), began+s.from, s.to-s.from, s.service, texts), `"parentId":"",`, ""))
		}
		resources = append(resources, byService[:])
		jaeger, zipkin = append(jaeger, jaegers), append(zipkin, zipkins)
	}
	files := map[string]*strings.Builder{}
	line := func(name, text string) {
		if files[name] == nil {
			files[name] = &strings.Builder{}
		}
		files[name].WriteString(text + "\n")
	}
	for i := range n {
		for name, state := range map[string]string{"OTLP, a threshold": "ot=th:c", "OTLP, an exponent": "ot=p:2;r:9"} {
			line(name, strings.ReplaceAll(fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},"scopeSpans":[{"spans":[%s]}]},{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"db"}}]},"scopeSpans":[{"spans":[%s]}]}]}`,
				resources[i][0], resources[i][1]), "STATE", state))
		}
		line("Jaeger", `{"data":[{"spans":[`+strings.Join(jaeger[i], ",")+`],"processes":{"web":{"serviceName":"web"},"db":{"serviceName":"db"}}}]}`)
		line("Zipkin", `[`+strings.Join(zipkin[i], ",")+`]`)
	}
	out := map[string]string{}
	for name, text := range files {
		out[name] = filepath.Join(t.TempDir(), "traces")
		if err := os.WriteFile(out[name], []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestOneSampledPopulationGetsOneAnswerFromFilesOfAnyStore(t *testing.T) {
	before, after := sampledFiles(t, 120, 10), sampledFiles(t, 120, 40)
	answers := map[string]string{}
	for name := range before {
		code, out := say(t, "contributions", before[name], "-o", "json")
		if code != exitDone || !strings.Contains(out, `"requests": 480`) || !strings.Contains(out, `"sampled_requests": 120`) {
			t.Errorf("%s: code %d:\n%s", name, code, out)
		}
		code, verdict := say(t, "blame", "--baseline", before[name], "--incident", after[name])
		if code != exitDone || !strings.Contains(verdict, "changed: 100% of 480 requests (120 sampled)") {
			t.Errorf("%s: code %d:\n%s", name, code, verdict)
		}
		answers[out+verdict] += name + "; "
	}
	if len(answers) != 1 {
		t.Errorf("not one answer: %v", answers)
	}
}
