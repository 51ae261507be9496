package prometheus_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/quantity"
)

// The answers below are those of Thanos 0.42 (pkg/api), of vmselect of a VictoriaMetrics
// cluster, and of Prometheus 3.16 (web/api/v1), to the byte.
const (
	thanosWarned = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.781,"20"]}],"analysis":{}},"warnings":["receive series from Addr: 10.0.0.7:10901 MinTime: 1699990000000 MaxTime: 9223372036854775807: rpc error: code = Unavailable desc = error reading from server: EOF"]}`
	thanosDenied = `{"status":"error","errorType":"execution","error":"expanding series: proxy Series(): rpc error: code = Aborted desc = receive series from Addr: 10.0.0.7:10901 MinTime: 1699990000000 MaxTime: 9223372036854775807: rpc error: code = Unavailable desc = error reading from server: EOF"}`
	vmPartial    = `{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000,"20"]}]},"stats":{"seriesFetched": "2","executionTimeMsec":1}}`
	vmWhole      = `{"status":"success","isPartial":false,"data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000,"40"]}]},"stats":{"seriesFetched": "4","executionTimeMsec":1}}`
	vmDenied     = `{"status":"error","errorType":"503","error":"cannot fetch data from vmstorage nodes: 10.0.0.8:8401: dial tcp4 10.0.0.8:8401: connect: connection refused"}`
	remoteRead   = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.781,"20"]}]},"warnings":["remote_read: remote server http://10.0.0.9/api/v1/read returned http status 503 Service Unavailable: "]}`
	annotated    = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.781,"40"]}]},"warnings":["PromQL warning: bucket label \"le\" is missing or has a malformed value for metric name \"x_bucket\" (1:20)","3 more warning annotations omitted"],"infos":["PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"x\" (1:10)"]}`
	// Thanos has both kinds in one list.
	thanosRemark = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.781,"40"]}],"analysis":{}},"warnings":["PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"x\" (1:10)"]}`
	thanosBoth   = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.781,"20"]}],"analysis":{}},"warnings":["PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"x\" (1:10)","receive series from Addr: 10.0.0.7:10901: EOF"]}`
)

// says answers values with a body, and with another where the request denies partial
// answers by parameter; denied "" is as without.
func says(w http.ResponseWriter, r *http.Request, body, parameter string, status int, denied string) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(r.FormValue("query"), "timestamp("):
		_, _ = io.WriteString(w, vector("7"))
	case denied != "" && r.FormValue(parameter) != "":
		w.WriteHeader(status)
		_, _ = io.WriteString(w, denied)
	default:
		_, _ = io.WriteString(w, body)
	}
}

func TestAPartialAnswerIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		body, parameter string
		status          int
		denied          string
		reason, kind    string
	}{
		"Thanos refuses":                {thanosWarned, "partial_response", 422, thanosDenied, "the answer is partial: receive series from Addr: 10.0.0.7:10901", "partial"},
		"Thanos that only warns":        {thanosWarned, "", 0, "", "the answer is partial: receive series from Addr: 10.0.0.7:10901", "partial"},
		"Thanos warns beside a remark":  {thanosBoth, "", 0, "", "the answer is partial: receive series from Addr: 10.0.0.7:10901: EOF", "partial"},
		"a VictoriaMetrics cluster":     {vmPartial, "deny_partial_response", 503, vmDenied, "a part of the storage did not answer", "partial"},
		"a cluster that only says it":   {vmPartial, "", 0, "", "a part of the storage did not answer", "partial"},
		"Prometheus with a remote read": {remoteRead, "", 0, "", "the answer is partial: remote_read", "partial"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				says(w, r, c.body, c.parameter, c.status, c.denied)
			}))
			defer server.Close()
			cfg, o := settings(server.URL)
			expectMissing(t, cfg, o, c.reason, c.kind)
		})
	}
}

// Also where the store is away only for the query for ages: the value is whole then, and
// how old it is is not known.
func TestAPartialAgeIsNoAge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.FormValue("query"), "timestamp(") {
			_, _ = io.WriteString(w, thanosWarned)
			return
		}
		_, _ = io.WriteString(w, vector("40"))
	}))
	defer server.Close()
	cfg, o := settings(server.URL)
	expectMissing(t, cfg, o, "the answer is partial", "partial")
}

func TestARemarkOnTheQueryTakesNothingFromItsAnswer(t *testing.T) {
	for name, body := range map[string]string{"Prometheus": annotated, "Thanos": thanosRemark, "a whole cluster": vmWhole} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { says(w, r, body, "", 0, "") }))
			defer server.Close()
			cfg, o := settings(server.URL)
			if got := collect(t, cfg, o, 1)[0]; got.Missing != "" || got.Value != 40 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// VictoriaMetrics evaluates now 30 s ago unless it is asked not to.
func TestNowIsNowForVictoriaMetricsToo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		if r.FormValue("nocache") != "1" {
			at = at.Add(-30 * time.Second)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,"%d.%03d"]}]},"stats":{"seriesFetched": "0","executionTimeMsec":0}}`,
			time.Now().Unix(), at.Unix(), at.Nanosecond()/1e6)
	}))
	defer server.Close()
	cfg, _ := settings(server.URL)
	ahead, within, err := prometheus.Clock(t.Context(), cfg)
	if err != nil || ahead.Abs() > within+time.Second {
		t.Errorf("the clock of a server on this host is %v off (%v)", ahead, err)
	}
}

// A proxy that checks its parameters, in front of a Prometheus.
func TestAProxyThatRefusesUnknownParametersIsAskedWithoutThem(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity} {
		refused := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			for name := range r.Form {
				if name != "query" && name != "time" && name != "timeout" {
					refused++
					http.Error(w, "unknown parameter "+name, status)
					return
				}
			}
			answering("application/json", 200, vector("9"))(w, r)
		}))
		cfg, o := settings(server.URL)
		cfg.Interval, cfg.Concurrency = time.Millisecond, 1
		for _, got := range collect(t, cfg, o, 5) {
			if got.Missing != "" || got.Value != 9 {
				t.Errorf("HTTP %d: %+v", status, got)
			}
		}
		if refused != 1 {
			t.Errorf("HTTP %d: it was asked %d times with parameters that it refuses", status, refused)
		}
		server.Close()
	}
}

// An answer that is refused for what it lacks must not be had in part by asking again:
// the store comes back for a moment, and is away again.
func TestWithoutTheParametersAPartialAnswerIsStillMissing(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.FormValue("query"); {
		case strings.Contains(query, "timestamp("):
			_, _ = io.WriteString(w, vector("7"))
		case r.FormValue("partial_response") == "false":
			w.WriteHeader(422)
			_, _ = io.WriteString(w, thanosDenied)
		default:
			if asked++; asked == 1 {
				_, _ = io.WriteString(w, vector("40"))
				return
			}
			_, _ = io.WriteString(w, thanosWarned)
		}
	}))
	defer server.Close()
	cfg, o := settings(server.URL)
	cfg.Interval, cfg.Concurrency = time.Millisecond, 1
	for i, got := range collect(t, cfg, o, 4) {
		if i == 0 && got.Value != 40 || i > 0 && (got.Value != 0 || !strings.Contains(got.Missing, "partial")) {
			t.Errorf("answer %d: %+v", i, got)
		}
	}
}

// Promise R30, as far as it is told by the answer: whatever store is away and whoever is
// asked, no sample is less than that of all.
func TestNoStoreThatIsAwayMakesALoadFall(t *testing.T) {
	bodies := []string{thanosWarned, thanosBoth, vmPartial, remoteRead}
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "timestamp(") {
			says(w, r, "", "", 0, "")
			return
		}
		n++
		switch {
		case n%3 == 0:
			says(w, r, vmWhole, "", 0, "")
		case n%5 == 1:
			says(w, r, bodies[n%4], "deny_partial_response", 503, vmDenied)
		default:
			says(w, r, bodies[n%4], "", 0, "")
		}
	}))
	defer server.Close()
	cfg, o := settings(server.URL)
	cfg.Interval, cfg.Concurrency = time.Millisecond, 1
	whole := 0
	for _, got := range collect(t, cfg, o, 200) {
		if got.Missing == "" && got.Value != 40 {
			t.Errorf("%+v", got)
		}
		if got.Quantity == quantity.Load && got.Missing == "" {
			whole++
		}
	}
	if whole < 40 {
		t.Errorf("%d of 200 answers are whole", whole)
	}
}
